/** How much of what goes over an HTTP/2 connection is answers. */

/** What each frame begins with: the length of its payload in three bytes, its type, and five more (RFC 9113, 4.1). */
const FRAME_HEAD_BYTES = 9;
const [LENGTH_BYTES, TYPE_AT] = [3, 3];
/** DATA, HEADERS, CONTINUATION (RFC 9113, 6). All others a client can have for the asking, without taking any answer. */
const ANSWERS: readonly number[] = [0, 1, 9];

/** Follows the frames of one connection. Gives how many of the bytes that come next belong to answers. */
export function countDataBytes(): (bytes: Buffer) => number {
  /** Where in the head of a frame, and what was read of it. */
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
