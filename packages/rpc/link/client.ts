/** A client's calls to one replica: over its link, as long as there is one. */
import type { ClientHttp2Stream } from "node:http2";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import type { Clock } from "@petstore/runtime/clock";
import { answerReader } from "connect-transcoder/response/answer-reader";
import { type CallLimit, enterCall } from "../client/call-limit.ts";
import { deadlineAfter } from "../deadline.ts";
import { WORK_PER_TURN } from "../http/turns.ts";
import { ClientCall } from "./client-call.ts";
import { type ClientStream, openStream } from "./client-stream.ts";
import { fromCallHeaders, toCallHeaders } from "./headers.ts";
import { onceATurn } from "./once-a-turn.ts";

/** A larger message goes by itself: on a link the calls behind it would wait for it. */
const BIG = 32 * 1024;
/** How long the calls to a replica that has no link are plain before it is asked for one again. */
const PLAIN_MS = 60_000;
/** Links that are lost one after the other before they are greeted, until calls are plain: something on the way may reset them. */
const MAX_LOST = 3;
/** How often it is looked for calls whose time is over. The service, too, ends them by itself. */
const SWEEP_MS = 20;

export interface LinkOptions {
  /** Opens a stream for a link, on the connection that plain RPCs use. `isAgain` after it was asked for one in vain. */
  readonly connect: (isAgain: boolean) => Promise<ClientHttp2Stream>;
  readonly clock: Clock;
  readonly limit: CallLimit;
}

/**
 * Wraps a transport so that unary calls go over one long-lived stream: those of one tick together, each with its own
 * headers and time limit, each answered as soon as it is ready. Streaming RPCs are plain, and so are big calls, and all
 * to a replica that has no link. All unary ones count towards the limit.
 */
export function withLink(plain: Transport, { connect, clock, limit }: LinkOptions): Transport {
  const endLate = sweepDeadlines(clock);
  /** Not sent yet. A new one for each turn: one that is emptied and filled again keeps what was in it (see `InFlight`). */
  let queue = new Set<ClientCall>();
  let stream: ClientStream | undefined;
  let isOpening = false;
  let plainUntil = Number.NEGATIVE_INFINITY;
  /** When it was asked for a link last, or too often in vain. Nobody waits then while it is asked again. */
  let hadNone = false;
  /** Links that were lost before they were greeted, since one was. */
  let lost = 0;

  /** How many calls went together last. */
  let together = 0;
  const flushSoon = onceATurn(flush, () => together === 1 && stream?.isIdle() === true);
  function flush(): void {
    if (clock() < plainUntil) for (const call of takeQueue()) sendPlainly(call);
    else if (!stream) {
      void open();
      if (hadNone) for (const call of takeQueue()) sendPlainly(call);
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
      const connected = await connect(hadNone);
      lost++;
      const opened = await openStream(connected, { onReady: flush, onOver });
      lost = 0;
      hadNone = !opened;
      if (!opened) plainUntil = clock() + PLAIN_MS;
      else if (!isOver) stream = opened;
    } catch (error) {
      for (const call of takeQueue()) call.fail(error);
      if (lost >= MAX_LOST) {
        plainUntil = clock() + PLAIN_MS;
        hadNone = true;
        lost = 0;
      }
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
        read: contextValues?.get(answerReader),
      };
      const call = new ClientCall(made, () => {
        leave();
        queue.delete(call);
      });
      if (signal?.aborted) call.handleEvent();
      else {
        endLate(call);
        queue.add(call);
        // As many as a turn begins are sent before it is over: the service begins with them meanwhile.
        if (queue.size === WORK_PER_TURN && stream) flush();
        else flushSoon();
      }
      return call.answered as Promise<UnaryResponse<never, never>>;
    },
  };
}

/** One timer for all calls to a replica: each with a timer of its own would cost more than it is worth to be exact. */
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
