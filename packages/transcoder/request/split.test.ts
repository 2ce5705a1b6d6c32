/** Streams of messages are cut at the same places in whatever pieces they come. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Splitter, splitJson, splitLines } from "./split.ts";

const MAX = 40;

function split({ push, end }: Splitter, pieces: readonly Uint8Array[]): string[] {
  return [...pieces.flatMap(push), ...end()].map((bytes) => Buffer.from(bytes).toString());
}
const whole = (text: string) => [Buffer.from(text)];
const bytewise = (text: string) => [...Buffer.from(text)].map((byte) => Uint8Array.of(byte));

describe("lines", () => {
  test.each([
    ["", []],
    ["\n \r\n", []],
    ['{"a":1}', ['{"a":1}']],
    ['{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']],
    ['\n{"a":1}\r\n\n[2]', ['{"a":1}\r', "[2]"]],
  ])("%j", (text, messages) => {
    for (const pieces of [whole(text), bytewise(text)]) expect(split(splitLines(MAX), pieces)).toEqual(messages);
  });

  test("may each have so many bytes, however many there are", () => {
    const line = "x".repeat(MAX);
    expect(split(splitLines(MAX), whole(`${line}\n`.repeat(100)))).toHaveLength(100);
    for (const pieces of [whole(`${line}x`), bytewise(`${line}x`), whole(`a\n${line}x\n`)])
      expect(() => split(splitLines(MAX), pieces)).toThrow(/larger than 40 bytes/);
  });
});

describe("JSON", () => {
  test.each([
    ["", []],
    [" \n", []],
    ["[]", []],
    [" [ ] ", []],
    ["[1]", ["1"]],
    ['[{"a":[1,2]},{"b":"]\\"},"}]\n', ['{"a":[1,2]}', '{"b":"]\\"},"}']],
    ['["\\\\",2]', ['"\\\\"', "2"]],
    ["[1,}]", ["1", "}"]],
    [' {"a":1}\n{}', ['{"a":1}', "{}"]],
  ])("%j is an array, or lines", (text, messages) => {
    for (const pieces of [whole(text), bytewise(text)]) expect(split(splitJson(MAX), pieces)).toEqual(messages);
  });

  test.each([
    ["[", /does not end/],
    ["[1", /does not end/],
    ['["]', /does not end/],
    ["[1,]", /message is missing/],
    ["[,1]", /message is missing/],
    ["[1,,2]", /message is missing/],
    ["[1]2", /behind the array/],
    ["[1][2]", /behind the array/],
    [`["${"x".repeat(MAX)}"]`, /larger than 40 bytes/],
  ])("%j is neither", (text, message) => {
    for (const pieces of [whole(text), bytewise(text)]) expect(() => split(splitJson(MAX), pieces)).toThrow(message);
  });

  test("of any values is cut into them, in any pieces", () => {
    const values = fc.array(fc.json({ maxDepth: 3 }), { maxLength: 5 });
    fc.assert(
      fc.property(values, fc.array(fc.nat(200)), fc.constantFrom(" ", "\n", ""), (texts, cuts, space) => {
        const bytes = Buffer.from(`${space}[${texts.join(`${space},`)}${space}]${space}`);
        const places = [0, ...cuts.map((at) => at % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
        const pieces = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
        expect(split(splitJson(1000), pieces).map((text) => JSON.parse(text))).toEqual(
          texts.map((text) => JSON.parse(text)),
        );
      }),
    );
  });
});
