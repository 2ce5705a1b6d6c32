/** Reads the bodies of requests. */
import { finished, type Readable } from "node:stream";
import { growing } from "./growing.ts";

/**
 * Resolves to the whole body. `check` gets each piece, and the length so far. If it throws, the rest is read and dropped, for
 * some clients look for the answer only after sending everything.
 */
export const readBody = (body: Readable, check: (piece: Buffer, length: number) => void): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const whole = growing();
    const add = (piece: Buffer): void => {
      try {
        check(piece, whole.length() + piece.length);
      } catch (error) {
        body.off("data", add).resume();
        reject(error);
        return;
      }
      whole.add(piece);
    };
    body.on("data", add);
    finished(body, { writable: false }, (error) => (error ? reject(error) : resolve(whole.take())));
  });
