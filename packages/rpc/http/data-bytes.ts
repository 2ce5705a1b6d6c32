/** Counts the bytes of responses among those sent over an HTTP/2 connection. */

/** A frame header: the length of the payload in three bytes, its type in one, and five more (RFC 9113, 4.1). */
export const FRAME_HEAD_BYTES = 9;
export const LENGTH_BYTES = 3;
const TYPE_AT = 3;
/** DATA, HEADERS, CONTINUATION (RFC 9113, 6). A client can provoke the other frames without taking any response. */
const ANSWERS: readonly number[] = [0, 1, 9];

/** Follows the frames of one connection. The function takes its next bytes and returns how many belong to responses. */
export function countDataBytes(): (bytes: Buffer) => number {
  /** The position in a frame header, and what was read of it. */
  let at = 0;
  let length = 0;
  let isAnswer = false;
  /** Bytes of the payload that are still to come. */
  let payload = 0;
  return (bytes) => {
    let counted = 0;
    for (let i = 0; i < bytes.length; ) {
      if (payload > 0) {
        const part = Math.min(payload, bytes.length - i);
        payload -= part;
        i += part;
        if (isAnswer) counted += part;
        continue;
      }
      const byte = bytes[i++] as number;
      if (at < LENGTH_BYTES) length = 256 * length + byte;
      else if (at === TYPE_AT) isAnswer = ANSWERS.includes(byte);
      if (++at < FRAME_HEAD_BYTES) continue;
      payload = length;
      [at, length] = [0, 0];
    }
    return counted;
  };
}
