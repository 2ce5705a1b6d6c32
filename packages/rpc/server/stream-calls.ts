/** Calls that are answered by a stream: how many there may be, and all the ways in which one ends. */
import type { Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { callerName, type Principal } from "../call.ts";
import { type ErrorCatalogue, RpcError } from "../errors/catalogue.ts";
import { messageOf } from "../message.ts";
import type { createAuthorization } from "./authorization.ts";
import type { StreamHandler } from "./handlers.ts";
import { createOpenStreams, type StreamLimits } from "./open-streams.ts";
import type { Entry, IncomingStream, Runs } from "./run.ts";
import { until } from "./until.ts";

export interface StreamCallsOptions extends Pick<Runs, "begin"> {
  readonly errors: ErrorCatalogue;
  readonly authorization: ReturnType<typeof createAuthorization>;
  readonly limits: StreamLimits;
  /** How long streams may go on once the process stops, in milliseconds. */
  readonly drainMs: number;
  /** Resolves when requests can be validated. */
  readonly ready: () => Promise<void> | undefined;
}

/** The longest time that a timer of Node can be set to: about 25 days. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const STOPS = "The process stops. Call again: another one goes on.";

interface OpenStream {
  readonly draining: AbortController;
  readonly ended: AbortController;
}

export function createStreamCalls({ begin, errors, authorization, limits, drainMs, ready }: StreamCallsOptions) {
  const { rpcError } = errors;
  const streams = new Set<OpenStream>();
  const [places, diagnosticPlaces] = [createOpenStreams(limits), createOpenStreams(limits)];
  let isDraining = false;

  /** `end` is called when the caller may not have it any more. Gives what frees the place again. */
  function takePlace(
    { method, limited, isDiagnostic }: Entry,
    { headers, isPeer = authorization.isTrusted(headers), asked }: IncomingStream,
    principal: Principal,
    end: (refusal: RpcError) => void,
  ): () => void {
    if (!limited) return () => {};
    // Load balancers watch for all of their own callers.
    const isCounted = !isDiagnostic && !isPeer;
    const caller = isCounted ? callerName(principal, () => `${asked?.network}`) : undefined;
    const free = (isDiagnostic ? diagnosticPlaces : places).enter(caller);
    if (typeof free === "string") throw rpcError("TOO_MANY_STREAMS", free);
    asked?.lasts();
    const leave = authorization.follow(method, headers, isPeer, end);
    return () => {
      free();
      leave();
    };
  }

  /** Ends with an RpcError or without any. `admit` says who calls, and is asked when the first message is. */
  async function* stream(
    entry: Entry,
    request: Message,
    incoming: IncomingStream,
    admit: () => Principal | Promise<Principal>,
  ) {
    const principal = await admit();
    const run = begin(entry, incoming, principal, Number.POSITIVE_INFINITY);
    const ended = new AbortController();
    const leave = takePlace(entry, incoming, principal, (refusal) => ended.abort(refusal));
    const draining = new AbortController();
    const open: OpenStream = { draining, ended };
    if (isDraining) draining.abort();
    // Not `AbortSignal.any`, which looks at its sources each time that it is asked.
    const { signal } = ended;
    const callerHasGone = () => ended.abort(incoming.signal.reason);
    incoming.signal.addEventListener("abort", callerHasGone, { once: true });
    if (incoming.signal.aborted) callerHasGone();
    // Also while its handler goes on, or nobody asks for its next message.
    signal.addEventListener("abort", leave, { once: true });
    const left = run.call.deadline - run.started;
    const timer = left <= MAX_TIMER_MS ? setTimeout(() => ended.abort(), Math.max(0, left)) : undefined;
    const stopped = () => {
      if (ended.signal.reason instanceof RpcError) return ended.signal.reason;
      return run.isLate() ? run.outOfTime() : new RpcError("the caller has gone", Code.Canceled);
    };
    let failure: RpcError | undefined;
    let thrown: unknown;
    /** False while a message waits. What comes then is no failure of the handler: it could not be sent, or nobody wants it. */
    let isTaken = true;
    streams.add(open);
    try {
      await ready();
      run.validate(request);
      const call = { ...run.call, responseHeaders: incoming.responseHeaders, signal, draining: draining.signal };
      const messages = (entry.handler as StreamHandler)(request, call);
      for await (const message of until(signal, messages, stopped)) {
        const answer = messageOf(entry.method.output, message);
        isTaken = false;
        yield answer;
        isTaken = true;
      }
    } catch (error) {
      thrown = isTaken ? error : stopped();
      failure = run.failed(thrown);
      throw failure;
    } finally {
      if (!isTaken && !failure) thrown = failure = stopped();
      streams.delete(open);
      clearTimeout(timer);
      incoming.signal.removeEventListener("abort", callerHasGone);
      ended.abort();
      leave(); // a signal that was aborted before calls nobody
      run.log(failure, thrown);
    }
  }

  /** Streams are told to end in good order; those that go on are ended. */
  function drain(): void {
    if (isDraining) return;
    isDraining = true;
    for (const { draining } of streams) draining.abort();
    const end = () => {
      for (const { ended } of streams) ended.abort(rpcError("UNAVAILABLE", STOPS));
    };
    setTimeout(end, drainMs).unref();
  }

  return { stream, drain };
}
