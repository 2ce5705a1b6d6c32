import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { readBody } from "./body.ts";

const pieces = (count: number) => Array.from({ length: count }, (_, i) => Buffer.from([i % 256]));
const body = (count: number) => Readable.from(pieces(count), { objectMode: false });

test.each([0, 1, 2, 3, 1000])("%i pieces are one body", async (count) => {
  const lengths: number[] = [];
  const read = await readBody(body(count), (piece, length) => void lengths.push(length - piece.length));
  expect(read).toEqual(Buffer.concat(pieces(count)));
  expect(lengths).toEqual(Array.from({ length: count }, (_, i) => i));
});

test("what follows a refused piece is dropped", async () => {
  const source = body(1000);
  const ended = once(source, "end");
  const refused = readBody(source, (_piece, length) => {
    if (length > 10) throw new Error("too long");
  });
  await expect(refused).rejects.toThrow("too long");
  await ended;
});

test("a body that breaks off is none, whether it does so before or while it is read", async () => {
  const source = new Readable({ read() {} });
  source.push("begun");
  const read = readBody(source, () => source.destroy());
  await expect(read).rejects.toMatchObject({ code: "ERR_STREAM_PREMATURE_CLOSE" });
  await expect(readBody(source, () => {})).rejects.toMatchObject({ code: "ERR_STREAM_PREMATURE_CLOSE" });
});
