import { expect, test } from "vitest";
import { readLines } from "./events.ts";

function chunks(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let from = 0;
  return new ReadableStream({
    pull(controller) {
      if (from >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(from, from + size));
      from += size;
    },
  });
}

test.each([1, 2, 3, 7, 1000])("lines are whole, however they are cut: %i bytes at a time", async (size) => {
  const bytes = new TextEncoder().encode('{"a":"ü€𐀀"}\n\n{}\n{"b":1}\n{"broken');
  expect(await Array.fromAsync(readLines(chunks(bytes, size)))).toEqual([{ a: "ü€𐀀" }, {}, { b: 1 }]);
});

test("a line without an end is refused", async () => {
  const endless = async () => Array.fromAsync(readLines(chunks(new Uint8Array(3 << 20).fill(65), 1 << 16)));
  await expect(endless()).rejects.toThrow(SyntaxError);
});
