/**
 * Sends most messages of a stream to the client without Connect. Connect (2.2) passes each through eight iterators, and
 * encodes it again for each client that gets the same: that was most of the work of a service with many streams.
 */
import type { ServerResponse } from "node:http";
import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { isGone } from "connect-transcoder/server/gone";

/** The response that messages are written to, as far as it is needed here. */
export interface AnswerStream extends Pick<ServerResponse, "closed" | "destroyed"> {
  readonly headersSent: boolean;
  /** Returns false if the client must take what was written before more is. */
  write(bytes: Uint8Array): boolean;
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
}

/** The response that gets the messages which bypass Connect. */
export const answerKey = createContextKey<AnswerStream | undefined>(undefined);

/** The size in bytes from which on a message is compressed for clients that accept it, as in Connect. */
export const COMPRESSED_BYTES = 1024;

/** By message, so that clients that get the same one share its encoding. */
const envelopes = new WeakMap<Message, Uint8Array>();

/** An uncompressed message as gRPC, gRPC-Web and Connect all frame it, whatever compression was negotiated: its flags are 0. */
export function envelopeOf<M extends Message>(message: M, serialize: (message: M) => Uint8Array): Uint8Array {
  const known = envelopes.get(message);
  if (known) return known;
  const envelope = encodeEnvelope(0, serialize(message) as Uint8Array<ArrayBuffer>);
  envelopes.set(message, envelope);
  return envelope;
}

/**
 * Yields the messages that are left to Connect: the first one, with which it sends the headers; those in JSON; and large
 * ones. Writes all others to the response itself, while Connect waits for the next message or for the end.
 */
export async function* pastConnect(
  messages: AsyncIterable<Message>,
  desc: DescMessage,
  { values, responseHeader }: Pick<HandlerContext, "values" | "responseHeader">,
): AsyncGenerator<Message, void> {
  const isBinary = !/json/.test(responseHeader.get("content-type") ?? "");
  for await (const message of messages) {
    const answer = isBinary ? values.get(answerKey) : undefined;
    const envelope = answer?.headersSent ? envelopeOf(message, (it) => toBinary(desc, it)) : undefined;
    if (!answer || !envelope || envelope.length > COMPRESSED_BYTES) yield message;
    else if (isGone(answer)) return;
    else if (!answer.write(envelope)) await taken(answer);
  }
}

/** Resolves when more may be written, or when the response is closed. */
export function taken(answer: AnswerStream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const events = ["drain", "close"] as const;
  const done = () => {
    for (const event of events) answer.off(event, done);
    resolve();
  };
  for (const event of events) answer.once(event, done);
  if (isGone(answer)) done();
  return promise;
}
