/** Sends a client's unary calls to one replica, as many as may wait at once, over its link, if there is one. */
import type { ClientHttp2Stream } from "node:http2";
import { create, type DescMessage, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import type { Clock } from "@petstore/runtime/clock";
import { deadlineAfter } from "../call.ts";
import { notMade } from "../client/failed-call.ts";
import type { ErrorCatalogue } from "../errors.ts";
import { ClientCall } from "./client-call.ts";
import { type ClientStream, openStream } from "./client-stream.ts";
import { fromCallHeaders, onceATurn, toCallHeaders } from "./frames.ts";

/** Calls of one turn that are sent together without waiting for more. */
const SENT_AT_ONCE = 32;
/** Bytes. A call with a larger message is a plain RPC: on a link the calls behind it would wait for it. */
const BIG = 32 * 1024;
/** How long calls to a replica without a link are plain RPCs before the next attempt to open one. */
const PLAIN_MS = 60_000;
/** Interval of the search for calls whose deadline has passed. The service ends them by itself, too. */
const SWEEP_MS = 20;

interface LinkOptions {
  /** Opens a stream for a link, on the connection of plain RPCs. `isAgain` if there was no link before. */
  readonly connect: (isAgain: boolean) => Promise<ClientHttp2Stream>;
  readonly clock: Clock;
  readonly limit: CallLimit;
  readonly links?: Links | undefined;
}

/** What the replicas of a service, which come and go, know of their links: a proxy on the way may be the same for all. */
export interface Links {
  /** There was no link at the last attempt. Calls don't wait for the next attempt then. */
  hadNone: boolean;
}

/**
 * Wraps a transport so that unary calls go over one long-lived stream. Calls of one tick are sent together, each with its own
 * headers and timeout; each is answered as soon as it is ready. Streaming RPCs are plain RPCs, and so are large calls, and all
 * calls to a replica without links. All unary calls count towards the limit.
 */
export function withLink(
  plain: Transport,
  { connect, clock, limit, links = { hadNone: false } }: LinkOptions,
): Transport {
  const endLate = sweepDeadlines(clock);
  /** Calls not sent yet. Each turn gets a new Set: one that is emptied and filled again keeps old entries (`InFlight`). */
  let queue = new Set<ClientCall>();
  let stream: ClientStream | undefined;
  let isOpening = false;
  let plainUntil = Number.NEGATIVE_INFINITY;

  /** How many calls were sent together last. */
  let together = 0;
  const flushSoon = onceATurn(flush, () => together === 1 && stream?.isIdle() === true);
  function flush(): void {
    if (clock() < plainUntil) for (const call of takeQueue()) sendPlainly(call);
    else if (!stream) {
      void open();
      if (links.hadNone) for (const call of takeQueue()) sendPlainly(call);
    } else if (stream.canSend() && queue.size > 0) {
      together = queue.size;
      stream.send(takeQueue());
    }
  }

  function takeQueue(): readonly ClientCall[] {
    const taken = [...queue];
    queue = new Set();
    return taken;
  }

  async function open(): Promise<void> {
    if (isOpening || queue.size === 0) return;
    isOpening = true;
    try {
      let isOver = false;
      const onOver = () => {
        isOver = true;
        stream = undefined;
        flushSoon();
      };
      const connected = await connect(links.hadNone);
      const opened = await openStream(connected, { onReady: flush, onOver });
      links.hadNone = !opened;
      if (!opened) plainUntil = clock() + PLAIN_MS;
      else if (!isOver) stream = opened;
    } catch (error) {
      for (const call of takeQueue()) call.fail(error);
    } finally {
      isOpening = false;
      flushSoon();
    }
  }

  function sendPlainly(call: ClientCall): void {
    const { method, input, headers, deadline, signal } = call.made;
    plain.unary(method, signal, deadline.timeoutMs(), fromCallHeaders(headers), input).then(
      (response) => call.succeed(response),
      (error) => call.fail(error),
    );
  }

  return {
    stream: plain.stream,
    unary(method, signal, timeoutMs, init, input, contextValues) {
      let entered: ReturnType<typeof enterCall>;
      try {
        entered = enterCall(limit, method, input);
      } catch (error) {
        return Promise.reject(error);
      }
      const { message, bytes, leave } = entered;
      if (bytes.length > BIG || clock() < plainUntil)
        return plain.unary(method, signal, timeoutMs, init, input, contextValues).finally(leave);
      const made = {
        method,
        input: message,
        bytes,
        headers: toCallHeaders(init),
        signal,
        deadline: deadlineAfter(clock, timeoutMs),
      };
      const call = new ClientCall(made, () => {
        leave();
        queue.delete(call);
      });
      if (signal?.aborted) call.handleEvent();
      else {
        endLate(call);
        queue.add(call);
        // Sent before the turn is over, so that the service begins with them meanwhile.
        if (queue.size === SENT_AT_ONCE && stream) flush();
        else flushSoon();
      }
      return call.answered as Promise<UnaryResponse<never, never>>;
    },
  };
}

/** Times calls out, with one timer for all calls to a replica: a timer per call would cost more than its precision is worth. */
function sweepDeadlines(clock: Clock): (call: ClientCall) => void {
  let calls: ClientCall[] = [];
  let timer: NodeJS.Timeout | undefined;
  const sweep = () => {
    const now = clock();
    for (const call of calls)
      if (call.made.deadline.at <= now) call.giveUp(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    calls = calls.filter(({ isSettled }) => !isSettled);
    if (calls.length > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return (call) => {
    if (call.made.deadline.at === Number.POSITIVE_INFINITY) return;
    calls.push(call);
    timer ??= setInterval(sweep, SWEEP_MS);
  };
}

/** Most unanswered calls to one service. */
const MAX_CALLS = 10_000;
/** Most bytes of their request messages. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Counts a call and its bytes. Returns a function to call when it ends. Throws OVERLOADED beyond the limit. */
export type CallLimit = (bytes: number) => () => void;

/** Bounds the calls of this process that wait for one service: a slow service must not fill the memory of its callers. */
export function limitCalls(errors: ErrorCatalogue, maxCalls = MAX_CALLS, maxBytes = MAX_BYTES): CallLimit {
  let calls = 0;
  let waiting = 0;
  return (bytes) => {
    if (calls >= maxCalls || waiting + bytes > maxBytes)
      throw notMade(errors, "OVERLOADED", "Too many calls are under way. Try again in a second.");
    calls++;
    waiting += bytes;
    return () => {
      calls--;
      waiting -= bytes;
    };
  };
}

/** Counts a call by the size of its request. Returns the encoded request, and `leave` to call when the call ends. */
function enterCall(limit: CallLimit, { input }: DescMethod, init: MessageInitShape<DescMessage>) {
  const message = create(input, init);
  const bytes = toBinary(input, message);
  return { message, bytes, leave: limit(bytes.length) };
}

/** Counts the unary calls of a transport towards the limit. */
export const withCallLimit = (next: Transport, limit: CallLimit): Transport => ({
  ...next,
  async unary(method, signal, timeoutMs, headers, input, contextValues) {
    const { leave } = enterCall(limit, method, input);
    return next.unary(method, signal, timeoutMs, headers, input, contextValues).finally(leave);
  },
});
