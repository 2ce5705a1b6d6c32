/** Calls of a Connect client to services in the same process: nothing is encoded, and no socket is passed. */
import { create, type DescMethodServerStreaming, type DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, type StreamResponse, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { markRunning, translating } from "../client/failed-call.ts";
import { fromAny, toAny } from "../errors.ts";
import type { Dispatcher } from "../server/dispatcher.ts";
import type { Answer } from "../server/run.ts";
import { onAbort } from "../server/until.ts";

/**
 * A transport to the services behind a dispatcher of this process. Deadlines, cancellation, headers, errors and answers are
 * those of a call over a link; the time limit is kept by the dispatcher. A message is handed over as it is: neither side may
 * change it after that. The dispatcher is asked for at each call, for services that call each other are opened one after
 * another.
 */
export const inProcessTransport = (dispatcherOf: () => Dispatcher): Transport => ({
  async unary(method, signal, timeoutMs, init, input) {
    if (signal?.aborted) throw givenUp(signal);
    const incoming = { headers: new Headers(init), timeoutMs, signal, isPeer: true as const };
    const call = dispatcherOf().invoke(method as DescMethodUnary, create(method.input, input), incoming);
    const { message, headers } = await unlessGivenUp(call, signal);
    const answer = { stream: false, service: method.parent, method, header: headers, trailer: new Headers(), message };
    return answer as unknown as UnaryResponse<typeof method.input, typeof method.output>;
  },
  async stream(method, signal, timeoutMs, init, input) {
    const [request] = await Array.fromAsync(input);
    const header = new Headers();
    const messages = dispatcherOf().stream(method as DescMethodServerStreaming, create(method.input, request), {
      headers: new Headers(init),
      timeoutMs,
      isPeer: true,
      whenGone: (end) => signal && onAbort(signal, end),
      responseHeaders: header,
    });
    const message = translating(messages, asReceived);
    const answer = { stream: true, service: method.parent, method, header, trailer: new Headers(), message };
    return answer as unknown as StreamResponse<typeof method.input, typeof method.output>;
  },
});

const givenUp = (signal: AbortSignal): ConnectError => ConnectError.from(signal.reason, Code.Canceled);

/** The service goes on with a call that was given up. */
async function unlessGivenUp(call: Promise<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
  const answered = call.catch((thrown) => {
    throw asReceived(thrown);
  });
  if (!signal) return answered;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const yes = () => true;
  const over = answered.then(yes, yes);
  const giveUp = () => reject(markRunning(givenUp(signal), over));
  signal.addEventListener("abort", giveUp, { once: true });
  answered.then(resolve, reject);
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

/**
 * The error as it arrives from another process: without its cause, and no RpcError, which a service that calls another one
 * would pass on as its own.
 */
function asReceived(thrown: unknown): ConnectError {
  const { rawMessage, code, metadata, details } = ConnectError.from(thrown);
  const error = new ConnectError(rawMessage, code, metadata);
  error.details = details.map((detail) => fromAny(toAny(detail)));
  return error;
}
