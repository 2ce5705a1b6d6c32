/** A log of the page's calls, newest first. */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { ofCaller } from "../session.ts";

/** Older ones are forgotten. */
const MAX_CALLS = 100;

export interface Call {
  readonly number: number;
  readonly method: DescMethod;
  readonly request: Message;
  readonly startedAt: Date;
  /** The outcome; undefined while the call is under way. */
  readonly end?: { readonly ms: number; readonly header: Headers } & (
    | { readonly answer: Message }
    | { readonly error: ConnectError }
  );
}

export const calls = ofCaller<readonly Call[]>([]);
let made = 0;

export const recorded: Interceptor = (next) => async (request) => {
  // Streams are not logged: what they bring is shown among the events.
  if (request.stream) return next(request);
  const started = performance.now();
  const call = { number: ++made, method: request.method, request: request.message, startedAt: new Date() };
  calls.value = [call, ...calls.value].slice(0, MAX_CALLS);
  const finish = (end: { header: Headers } & ({ answer: Message } | { error: ConnectError })) => {
    const finished = { ...call, end: { ...end, ms: Math.round(performance.now() - started) } };
    calls.value = calls.value.map((each) => (each.number === call.number ? finished : each));
  };
  try {
    const response = await next(request);
    if (!response.stream) finish({ answer: response.message, header: response.header });
    return response;
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    // The page cancelled the call, to make a new one or because it was left: nothing can be learned from it.
    if (error.code === Code.Canceled && request.signal.aborted)
      calls.value = calls.value.filter(({ number }) => number !== call.number);
    else finish({ error, header: error.metadata });
    throw thrown;
  }
};
