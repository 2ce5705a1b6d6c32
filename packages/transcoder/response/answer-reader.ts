/** How a caller gets of an answer what it needs, where that is less than a message. */
import { type ContextKey, createContextKey } from "@connectrpc/connect";

/** Makes something of the encoded message of an answer, or undefined: then the caller takes the message. */
export type ReadAnswer = (bytes: Uint8Array) => object | undefined;

/**
 * In the context values of a call: what the caller would rather have in place of the answer's message. A transport that
 * holds the bytes may give it; the caller takes the message as well, which other transports give.
 */
export const answerReader: ContextKey<ReadAnswer | undefined> = createContextKey<ReadAnswer | undefined>(undefined, {
  description: "reads the answer in place of its message",
});
