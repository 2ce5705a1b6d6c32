import { type Readable, Transform } from "node:stream";

/** A body went on beyond its limit. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/**
 * The same bytes, up to a limit; what follows ends the stream with `TooLarge`. The source is read to its end then, for a
 * connection that is closed with bytes unread may lose the answer on its way.
 */
export function metered(source: Readable, maxBytes: number): Readable {
  let size = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (size <= maxBytes) return done(null, chunk);
      source.unpipe(meter);
      source.resume();
      done(new TooLarge());
    },
  });
  source.once("error", (error) => meter.destroy(error));
  return source.pipe(meter);
}
