/**
 * The messages of a stream on a shorter way to its client. Connect (2.2) takes each through eight iterators, and encodes it
 * anew for each client that is told the same: most of what a service with many streams did.
 */
import type { ServerResponse } from "node:http";
import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { isGone } from "connect-transcoder/server/gone";

/** What an answer is written to, as far as it is needed here. */
export interface AnswerStream extends Pick<ServerResponse, "closed" | "destroyed"> {
  readonly headersSent: boolean;
  /** False when what was written has to be taken before more is. */
  write(bytes: Uint8Array): boolean;
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
}

/** Where the messages go that Connect does not get. */
export const answerKey = createContextKey<AnswerStream | undefined>(undefined);

/** From so many bytes on a message is compressed for who takes that, as Connect does it. */
export const COMPRESSED_BYTES = 1024;

/** By message, so that those who are told the same share one encoding of it. */
const envelopes = new WeakMap<Message, Uint8Array>();

/** Alike in gRPC, gRPC-Web and Connect, whatever compression was agreed on: no flag says that it was used. */
export function envelopeOf<M extends Message>(message: M, serialize: (message: M) => Uint8Array): Uint8Array {
  const known = envelopes.get(message);
  if (known) return known;
  const envelope = encodeEnvelope(0, serialize(message) as Uint8Array<ArrayBuffer>);
  envelopes.set(message, envelope);
  return envelope;
}

/**
 * The messages that are left for Connect: the first one, with which it sends the headers; those in JSON; and those that are
 * large. All others are written behind the one before, while Connect waits for the next and for the end.
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

/** Resolves when more may be written, or nothing ever again. */
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
