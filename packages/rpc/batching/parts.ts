/** How large batches are, on the way there and on the way back. */
import { MAX_MESSAGE_BYTES } from "../server/message-limit.ts";

/** Calls in one batch. */
export const MAX_BATCH_CALLS = 256;
/** Bytes at which a batch is full; one that holds a single call or result may have more. */
const FULL_BYTES = 512 * 1024;
/** What a call or result may have around its message: name, headers, tags and lengths. */
const MAX_FRAME_BYTES = 64 * 1024;
/** Largest batch: it has room for one message of the size that any RPC may have. */
export const MAX_BATCH_BYTES = MAX_MESSAGE_BYTES + MAX_FRAME_BYTES;

/** Tags and lengths around one field or detail, at most. */
export const TAG_BYTES = 32;
// A character of a header takes two bytes at most in UTF-8, one of any other text three.
export const bytesOfFields = (headers: readonly { readonly name: string; readonly value: string }[]): number =>
  headers.reduce((sum, { name, value }) => sum + TAG_BYTES + 2 * (name.length + value.length), TAG_BYTES);
export const bytesOfText = (text: string): number => TAG_BYTES + 3 * text.length;

/** Cuts what would travel together into batches. `bytesOf` may say too much, but not too little. */
export function* parts<T>(all: readonly T[], bytesOf: (one: T) => number): Generator<T[]> {
  let part: T[] = [];
  let bytes = 0;
  for (const one of all) {
    const size = bytesOf(one);
    if (part.length === MAX_BATCH_CALLS || (part.length > 0 && bytes + size > FULL_BYTES)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(one);
    bytes += size;
  }
  if (part.length > 0) yield part;
}
