import { expect, test } from "vitest";
import { WireReader } from "./wire-reader.ts";

test("a string that nobody needs is decoded once, however many of its letters are no ASCII", () => {
  const text = Buffer.from("é".repeat(100));
  let decoded = 0;
  class Counting extends WireReader {
    override string(end: number): string {
      decoded++;
      return super.string(end);
    }
    get place() {
      return this.at;
    }
  }
  const reader = new Counting(Buffer.concat([Buffer.from([0xc8, 0x01]), text, Buffer.from("behind it")]));
  reader.skipString(211);
  expect([decoded, reader.place]).toEqual([1, 202]);
});
