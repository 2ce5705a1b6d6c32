/** Reads the bodies of requests. */
import { finished, type Readable } from "node:stream";

/**
 * Resolves to the whole body. Its pieces are put together as they come: a piece may be a chunk or a frame of one byte, and
 * would take some 400 bytes if it was kept. `check` gets each piece, and the length so far. If it throws, the rest is read and
 * dropped, for some clients look for the answer only after sending everything.
 */
export const readBody = (body: Readable, check: (piece: Buffer, length: number) => void): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    let buffer = Buffer.alloc(0);
    let length = 0;
    const add = (piece: Buffer): void => {
      const needed = length + piece.length;
      try {
        check(piece, needed);
      } catch (error) {
        body.off("data", add).resume();
        reject(error);
        return;
      }
      if (needed > buffer.length) buffer = Buffer.concat([buffer], length === 0 ? needed : 2 * needed);
      piece.copy(buffer, length);
      length = needed;
    };
    body.on("data", add);
    finished(body, { writable: false }, (error) => (error ? reject(error) : resolve(buffer.subarray(0, length))));
  });
