/** Bytes that come in pieces, put together as they come. */

/**
 * A piece may be a chunk or a frame of one byte, and would take some 400 bytes if it was kept. So each is copied, into room
 * that doubles when it is full.
 */
export function growing() {
  let buffer = Buffer.alloc(0);
  let length = 0;
  return {
    length: () => length,
    add(piece: Uint8Array): void {
      const needed = length + piece.length;
      if (needed > buffer.length) buffer = Buffer.concat([buffer], length === 0 ? needed : 2 * needed);
      buffer.set(piece, length);
      length = needed;
    },
    /** Gives what there is, and begins anew. */
    take(): Buffer {
      const taken = buffer.subarray(0, length);
      buffer = Buffer.alloc(0);
      length = 0;
      return taken;
    },
  };
}
