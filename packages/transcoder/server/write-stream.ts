/** Writes an answer whose messages come one after the other, until there are no more or nobody reads. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex, Writable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { HttpError } from "../errors/http-error.ts";
import type { StreamWriter } from "../response/events.ts";
import { type After, after } from "./after.ts";

/** After so many milliseconds without a message a heartbeat shows that the connection is alive (WHATWG HTML, 9.2.7). */
const HEARTBEAT_MS = 15_000;

export interface StreamOutput<M> {
  /** The first of the messages, which was asked for already. */
  readonly first: Promise<IteratorResult<M>>;
  readonly messages: AsyncIterator<M>;
  /** Whether the answer begins without waiting for the first message any longer. */
  readonly isLate: boolean;
  /** Aborts when nobody reads any more, or is to. An HttpError as its reason is told to who reads. */
  readonly signal: AbortSignal;
  /** What is told of a failure, as JSON text. */
  readonly tell: (error: unknown) => string;
  /** Ends an answer that failed, behind these last words. By default in good order. */
  readonly breakOff?: ((last: string) => void) | undefined;
  /** Resolves when there is room for the next message. By default when the output has been read. */
  readonly room?: (() => Promise<unknown>) | undefined;
}

/** Writes messages as they come, and asks for the next when there is room for it; then ends the output. */
export async function writeStream<M>(
  output: Writable,
  writer: StreamWriter<M>,
  { first, messages, isLate, signal, tell, breakOff, room }: StreamOutput<M>,
  runAfter: After = after,
): Promise<void> {
  let stopClock = () => {};
  const restartClock = () => {
    stopClock();
    stopClock = runAfter(HEARTBEAT_MS, () => {
      if (!output.writableNeedDrain) output.write(writer.heartbeat());
      restartClock();
    });
  };
  const write = async (piece: string | Uint8Array) => {
    restartClock();
    if (output.write(piece)) return;
    await (room ? room() : once(output, "drain", { signal }));
  };
  let failure: unknown;
  try {
    await write(writer.head || (isLate ? writer.heartbeat() : ""));
    for (let next = await first; !next.done; next = await messages.next()) await write(writer.message(next.value));
  } catch (error) {
    failure = error;
    // It may be left in the midst, where there is no room for a message.
    messages.return?.().catch(() => {});
  }
  stopClock();
  const last = signal.aborted ? lastWord(signal) : failure;
  if (last === undefined) return void output.end(signal.aborted ? "" : writer.end);
  const text = writer.error(tell(last));
  if (breakOff) breakOff(text);
  else output.end(text);
}

/** What a stream is told that has to end because its server does. */
export const CLOSING = new HttpError("UNAVAILABLE", "The server closes. Try again.");

/** The error that an ended stream sends last: none if it ended in good order, or its reader has left. */
export const lastWord = ({ reason }: AbortSignal): HttpError | undefined =>
  reason instanceof HttpError ? reason : undefined;

/** Most bytes of answers that may be unread while the request still arrives. */
const UNREAD_BYTES = 1024 * 1024;

const UNREAD = new HttpError(
  "RESOURCE_EXHAUSTED",
  "The answers are not read while the request is sent, and more than 1 MiB of them is waiting.",
  {},
  429,
);

/**
 * Many clients of HTTP/1.1 read no answer before they have sent all of their request. A service that waits for its answers to
 * be read before it reads on would wait for ever. So while the request arrives answers are kept, up to a limit; then the call
 * ends. Clients of HTTP/2 read and write at once.
 */
export function unreadLimit(
  output: Duplex,
  request: IncomingMessage,
  signal: AbortSignal,
  end: (error: HttpError) => void,
): () => Promise<unknown> {
  return async () => {
    // A service in the same process might leave the connection no time to take what it can.
    await turn();
    if (!output.writableNeedDrain) return;
    if (request.httpVersionMajor === 2 || request.complete) return once(output, "drain", { signal });
    if (output.readableLength + output.writableLength > UNREAD_BYTES) end(UNREAD);
    signal.throwIfAborted();
  };
}
