/** Server-streaming calls: how many there may be, and all the ways in which one ends. */
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { credentialsIn } from "../auth/credentials.ts";
import { callerName, LONGEST_TIMER_MS, type Principal } from "../call.ts";
import { RpcError } from "../errors.ts";
import { defaultStreamLimits, type StreamLimits } from "../http/limits.ts";
import type { DispatcherOptions } from "./dispatcher.ts";
import type { Init, StreamHandler } from "./handlers.ts";
import type { Admitted, Entry, Incoming, IncomingStream, Run, Runs } from "./run.ts";
import { leave } from "./until.ts";

const nothing = () => {};

/** Enough for a last message over a slow network, and less than a server that closes gives running requests. */
const DRAIN_MS = 5_000;

const STOPS = "The process stops. Call again: another one goes on.";

/** An open stream, without what only its beginning needed, because it may last for days. */
class OpenStream {
  readonly run: Run;
  /** Its signal tells the handler that nobody wants more messages, or that the process stops. */
  readonly stopping = new AbortController();
  messages: AsyncIterator<Init> | undefined;
  timer: NodeJS.Timeout | undefined;
  /** Stops counting the stream and rechecking its credentials. */
  leave = nothing;
  /** Rejects the promise of the next message. */
  fail: (error: RpcError) => void = nothing;
  isOver = false;
  /** Why it was ended, if neither its caller nor its deadline ended it. */
  why: RpcError | undefined;

  constructor(run: Run) {
    this.run = run;
  }
}

/** Opens a stream, once: `open` is dropped when it was called, so that the request is not kept. */
interface Beginning {
  open?: (() => Promise<OpenStream>) | undefined;
}

export function createStreamCalls(
  runs: Runs,
  isOwn: (incoming: Incoming) => boolean,
  { errors, authentication, streamLimits: limits = defaultStreamLimits, drainMs = DRAIN_MS }: DispatcherOptions,
) {
  const { rpcError } = errors;
  const streams = new Set<OpenStream>();
  const openStreams = createOpenStreams(limits);
  // A load balancer watches on behalf of all its own callers.
  const openDiagnostics = createOpenStreams({ ...limits, streamsPerCaller: Math.ceil(limits.streams / 4) });
  const draining = new AbortController();

  /**
   * Counts a stream, and calls `end` if its caller is no longer admitted. Returns a function that undoes both. A peer is not
   * checked again, for it ends the call itself when its own caller is no longer admitted.
   */
  function countStream(
    { method, limited, isDiagnostic }: Entry,
    incoming: IncomingStream,
    principal: Principal,
    end: (refusal: RpcError) => void,
  ): () => void {
    if (!limited) return nothing;
    const { headers, origin } = incoming;
    const isPeer = isOwn(incoming);
    const caller = isPeer ? undefined : callerName(principal, () => `${origin?.network}`);
    const free = (isDiagnostic ? openDiagnostics : openStreams).enter(caller);
    if (typeof free === "string") throw runs.refused(method, rpcError("TOO_MANY_STREAMS", free));
    origin?.countAsStream();
    const stopRechecks = isPeer ? undefined : authentication?.recheck(credentialsIn(headers), method, end);
    return () => {
      free();
      stopRechecks?.();
    };
  }

  const stopped = ({ why, run }: OpenStream): RpcError =>
    why ?? (runs.isLate(run) ? runs.late(run) : new RpcError("the caller has gone", Code.Canceled));

  /** Ends a stream, even while its handler is running or while nobody asks for its next message. */
  function end(open: OpenStream, why?: RpcError): void {
    if (open.isOver) return;
    open.isOver = true;
    open.why = why;
    open.leave();
    open.stopping.abort();
    open.fail(stopped(open));
    if (open.messages) leave(open.messages);
  }

  async function open(
    entry: Entry,
    request: Message,
    incoming: IncomingStream,
    admit: () => Promise<Admitted>,
  ): Promise<OpenStream> {
    const admitted = await admit();
    const run = runs.begin(entry, incoming, admitted, Number.POSITIVE_INFINITY);
    const open = new OpenStream(run);
    const { stopping } = open;
    open.leave = countStream(entry, incoming, admitted.principal, (refusal) => end(open, refusal));
    if (draining.signal.aborted) stopping.abort();
    incoming.whenGone(() => end(open));
    const left = run.call.deadline - run.started;
    if (left <= LONGEST_TIMER_MS) open.timer = setTimeout(() => end(open), Math.max(0, left));
    streams.add(open);
    try {
      await runs.prepared();
      runs.validated(run, request);
      if (open.isOver) throw stopped(open);
      const { responseHeaders } = incoming;
      const call = { ...run.call, responseHeaders, signal: stopping.signal, draining: draining.signal };
      open.messages = (entry.handler as StreamHandler)(request, call)[Symbol.asyncIterator]();
      return open;
    } catch (thrown) {
      const failure = runs.failed(run, thrown);
      close(open, failure, thrown);
      throw failure;
    }
  }

  function close(open: OpenStream, failure: RpcError | undefined, thrown: unknown): void {
    streams.delete(open);
    clearTimeout(open.timer);
    end(open);
    open.leave(); // it may have been ended before `countStream` returned
    runs.end(open.run, failure, thrown);
  }

  const next = (open: OpenStream) =>
    new Promise<IteratorResult<Init, void>>((resolve, reject) => {
      open.fail = reject;
      if (open.isOver || !open.messages) reject(stopped(open));
      else open.messages.next().then(resolve, reject);
    });

  async function* deliver(beginning: Beginning, output: DescMessage) {
    const opening = beginning.open?.();
    beginning.open = undefined;
    const open = await opening;
    if (!open) return;
    let failure: RpcError | undefined;
    let thrown: unknown;
    /** False while a message waits to be sent. An error then is not the handler's: sending failed, or the caller has gone. */
    let isTaken = true;
    try {
      for (let item = await next(open); !item.done; item = await next(open)) {
        const answer = create(output, item.value);
        isTaken = false;
        yield answer;
        isTaken = true;
      }
    } catch (error) {
      thrown = isTaken ? error : stopped(open);
      failure = runs.failed(open.run, thrown);
      throw failure;
    } finally {
      if (!isTaken && !failure) thrown = failure = stopped(open);
      close(open, failure, thrown);
    }
  }

  /** The stream ends with an RpcError or without one. `admit` returns who calls, and runs when the first message is read. */
  const stream = (
    entry: Entry,
    request: Message,
    incoming: IncomingStream,
    admit: () => Promise<Admitted>,
  ): AsyncIterable<Message> => deliver({ open: () => open(entry, request, incoming, admit) }, entry.method.output);

  /** Aborts the signals of all streams, and ends those that are still open after `drainMs` with UNAVAILABLE. */
  function drain(): void {
    if (draining.signal.aborted) return;
    draining.abort();
    for (const { stopping } of streams) stopping.abort();
    const endAll = () => {
      for (const open of streams) end(open, rpcError("UNAVAILABLE", STOPS));
    };
    setTimeout(endAll, drainMs).unref();
  }

  return { stream, drain, count: () => streams.size };
}

/** Limits the number of open streams. */
export function createOpenStreams({ streams, streamsPerCaller }: StreamLimits) {
  const all = new Map<string | undefined, number>();
  let count = 0;
  return {
    count: () => count,
    /**
     * Counts one more stream, and returns a function that stops counting it. If the limit is reached, returns a message for the
     * caller instead. An undefined `caller` is one of the system's own processes, which has counted its own callers.
     */
    enter(caller: string | undefined): (() => void) | string {
      const own = all.get(caller) ?? 0;
      if (caller !== undefined && own >= streamsPerCaller)
        return `There are ${own} streams open of this caller, as many as there may be. End one of them first.`;
      if (count >= streams) return `There are ${count} streams open, as many as there may be. Try again later.`;
      all.set(caller, own + 1);
      count++;
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        count--;
        const left = (all.get(caller) ?? 0) - 1;
        if (left > 0) all.set(caller, left);
        else all.delete(caller);
      };
    },
  };
}
