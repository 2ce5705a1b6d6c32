/**
 * The messages of a stream on a shorter way to its client. Connect (2.2) takes each through eight iterators, and encodes it
 * anew for each client that is told the same: most of what a service with many streams did.
 */
import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";

/** What an answer is written to, as far as it is needed here. */
export interface AnswerStream {
  readonly headersSent: boolean;
  readonly writable: boolean;
  /** False when what was written has to be taken before more is. */
  write(bytes: Uint8Array): boolean;
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
}

/** An answer beside Connect. */
export interface Beside {
  readonly answer: AnswerStream;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** Writes what is left of a stream that Connect takes to be over. */
  rest?: (() => Promise<void>) | undefined;
}
export const besideKey = createContextKey<Beside | undefined>(undefined);

/** Larger messages may be worth compressing, from as many bytes on as Connect does it. */
const MAX_BYTES = 1024;

/** By message, so that those who are told the same share one encoding of it. */
const envelopes = new WeakMap<Message, Uint8Array>();

function envelopeOf(desc: DescMessage, message: Message): Uint8Array {
  const known = envelopes.get(message);
  if (known) return known;
  // Alike in gRPC, gRPC-Web and Connect, whatever compression was agreed on: no flag says that it was used.
  const envelope = encodeEnvelope(0, toBinary(desc, message));
  envelopes.set(message, envelope);
  return envelope;
}

/** Binary gRPC: what ends it are trailers, which can be changed when Connect is done. */
const isGrpc = (header: Headers): boolean => /^application\/grpc(\+proto)?$/.test(header.get("content-type") ?? "");

type Context = Pick<HandlerContext, "values" | "responseHeader" | "signal">;

/** Aborts when the caller has gone, but not when a stream is over for Connect alone. */
export const callerSignal = ({ values, responseHeader, signal }: Context): AbortSignal =>
  (isGrpc(responseHeader) && values.get(besideKey)?.signal) || signal;

/**
 * The messages that are left for Connect: the first one, with which it sends the headers; those in JSON; and those that are
 * large. All others are written behind the one before, while Connect waits for the next and for the end. Of gRPC Connect has
 * the first one alone: what it holds for a stream takes more memory than all else.
 */
export async function* pastConnect(
  messages: AsyncIterable<Message>,
  desc: DescMessage,
  { values, responseHeader }: Context,
): AsyncGenerator<Message, void> {
  const beside = values.get(besideKey);
  const isBinary = !/json/.test(responseHeader.get("content-type") ?? "");
  const iterator = messages[Symbol.asyncIterator]();
  let isGivenAway = false;
  try {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      const message = next.value;
      const answer = beside?.answer.headersSent && isBinary ? beside.answer : undefined;
      const envelope = answer && envelopeOf(desc, message);
      if (!answer || !envelope || envelope.length > MAX_BYTES) yield message;
      else if (!answer.writable) return;
      else if (!answer.write(envelope)) await taken(answer);
      if (beside && isGrpc(responseHeader)) {
        isGivenAway = true;
        beside.rest = () => writeRest(iterator, desc, beside.answer);
        return;
      }
    }
  } finally {
    if (!isGivenAway) iterator.return?.().catch(() => {});
  }
}

async function writeRest(messages: AsyncIterator<Message>, desc: DescMessage, answer: AnswerStream): Promise<void> {
  for await (const message of { [Symbol.asyncIterator]: () => messages }) {
    if (!answer.writable) return;
    if (!answer.write(envelopeOf(desc, message))) await taken(answer);
  }
}

/**
 * An answer's body as Connect makes it, and then what is left beside it. Keeps nothing of Connect's when that is over; the
 * trailers say how the rest ended.
 */
export function withRest(
  body: AsyncIterable<Uint8Array>,
  trailer: Headers | undefined,
  beside: Beside,
): AsyncIterable<Uint8Array> {
  let connects: AsyncIterator<Uint8Array> | undefined = body[Symbol.asyncIterator]();
  async function next(): Promise<IteratorResult<Uint8Array>> {
    const chunk = await connects?.next();
    if (chunk && !chunk.done) return chunk;
    connects = undefined;
    const { rest } = beside;
    beside.rest = undefined;
    try {
      await rest?.();
    } catch (error) {
      if (trailer) setTrailerStatus(trailer, ConnectError.from(error));
    }
    return { done: true, value: undefined };
  }
  const leave = async () => {
    await connects?.return?.();
    return { done: true, value: undefined } as const;
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: leave }) };
}

/** Resolves when more may be written, or nothing ever again. */
function taken(answer: AnswerStream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const events = ["drain", "close"] as const;
  const done = () => {
    for (const event of events) answer.off(event, done);
    resolve();
  };
  for (const event of events) answer.once(event, done);
  if (!answer.writable) done();
  return promise;
}
