/** The calls of one link at the service. Each passes through the dispatcher, and gets one answer. */
import { type DescMethodUnary, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Call, LinkRequest } from "../gen/link/internal/v1/link_service_pb.ts";
import { MAX_MESSAGE_BYTES } from "../http/limits.ts";
import type { Dispatcher } from "../server/dispatcher.ts";
import { noSuchRpc } from "../server/refused-calls.ts";
import {
  type AnswerInit,
  bytesOfAnswer,
  failedAnswer,
  fromCallHeaders,
  LinkViolation,
  MAX_FRAME_BYTES,
  toFields,
} from "./frames.ts";

/** Most methods that may have a number on one link. */
const MAX_METHODS = 1000;

/**
 * `onEnd` is called with the answer of each call; with undefined if it can't be sent any more. The process that opened the link
 * has proved to be one of the system's own, so its calls need not prove it again.
 */
export function createServerCalls(dispatcher: Dispatcher, onEnd: (answer: AnswerInit | undefined) => void) {
  const methods = new Map<number, DescMethodUnary | undefined>();
  /** By id. Replaced by a new Map whenever it is empty, see `InFlight`. */
  let running = new Map<number, AbortController>();
  let bytes = 0;
  let isAbandoned = false;

  function define(number: number, name: string): void {
    if (methods.has(number)) throw new LinkViolation(`method ${number} has two names`);
    if (methods.size === MAX_METHODS) throw new LinkViolation(`more than ${MAX_METHODS} methods have a number`);
    methods.set(number, dispatcher.find(name));
  }

  function begin(call: Call): void {
    const { id } = call;
    if (!methods.has(call.method)) throw new LinkViolation(`no method has the number ${call.method}`);
    if (running.has(id)) throw new LinkViolation(`two calls under way have the id ${id}`);
    const controller = new AbortController();
    const { signal } = controller;
    running.set(id, controller);
    bytes += call.message.length;
    const work = async () => {
      const answer = signal.aborted ? undefined : await run(dispatcher, methods.get(call.method), call, signal);
      running.delete(id);
      if (running.size === 0) running = new Map();
      bytes -= call.message.length;
      onEnd(isAbandoned ? undefined : answer && !signal.aborted ? answer : failedAnswer(id, cancelled()));
    };
    // Not at once: the rest of the message, such as its cancels, is read first.
    queueMicrotask(work);
  }

  return {
    /** Begins the calls of a message. Throws LinkViolation. */
    take({ methods, calls, cancels }: LinkRequest): void {
      for (const { number, name } of methods) define(number, name);
      for (const call of calls) begin(call);
      for (const id of cancels) running.get(id)?.abort(); // it may have been answered meanwhile
    },
    /** The number of unanswered calls, and the bytes of their requests. */
    underWay: () => ({ calls: running.size, bytes }),
    /** To be called when no answer can be sent any more: calls that have not begun never begin, and reads end. */
    abandon(): void {
      isAbandoned = true;
      for (const controller of running.values()) controller.abort();
    },
  };
}

const cancelled = () => new ConnectError("the caller has given up", Code.Canceled);

/** Runs one call like a plain RPC. Never rejects. */
async function run(
  dispatcher: Dispatcher,
  method: DescMethodUnary | undefined,
  call: Call,
  signal: AbortSignal,
): Promise<AnswerInit> {
  const { id } = call;
  try {
    if (!method) throw noSuchRpc(dispatcher.errors);
    const request = read(method, call);
    const { message, headers } = await dispatcher.invoke(method, request.message, {
      headers: request.headers,
      timeoutMs: call.timeoutMs || undefined,
      signal,
      isPeer: true,
    });
    const value = toBinary(method.output, message);
    const answer: AnswerInit = { id, outcome: { case: "message", value }, headers: toFields(headers) };
    // As a plain RPC it would fail, too. On a link it must not make the other calls fail.
    if (value.length > MAX_MESSAGE_BYTES || bytesOfAnswer(answer) > MAX_FRAME_BYTES) throw answerTooLarge(value.length);
    return answer;
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const answer = failedAnswer(id, error);
    if (bytesOfAnswer(answer) <= MAX_FRAME_BYTES) return answer;
    return failedAnswer(id, new ConnectError("too much to tell", error.code));
  }
}

/** Throws INTERNAL for a call that can't be decoded, as gRPC does ("Status codes and their use in gRPC"). */
function read(method: DescMethodUnary, call: Call) {
  try {
    return { message: fromBinary(method.input, call.message), headers: fromCallHeaders(call) };
  } catch (cause) {
    throw new ConnectError("the call can't be read", Code.Internal, undefined, undefined, cause);
  }
}

const answerTooLarge = (bytes: number) =>
  new ConnectError(`an answer of ${bytes} bytes is larger than any message may be`, Code.ResourceExhausted);
