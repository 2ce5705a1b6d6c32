import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonNumber, type JsonValue, parseJson } from "./json.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const parse = (text: string, maxDepth = 16) => parseJson(encode(text), maxDepth);

/** What JSON.parse would have made of it. */
function plain(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return Number(value.text);
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, item]) => [name, plain(item)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

const anyJson = fc.jsonValue({ maxDepth: 10, noUnicodeString: false });

test("whatever JSON.stringify writes is read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(anyJson, fc.constantFrom("", " ", "\t", "\r\n  "), (value, indent) => {
      fc.pre(JSON.stringify(value).isWellFormed() && !/\\ud[89a-f]/i.test(JSON.stringify(value)));
      const text = JSON.stringify(value, null, indent);
      expect(plain(parse(text, 100))).toEqual(JSON.parse(text));
    }),
  );
});

const attempt = <T>(read: () => T): { value: T } | { error: unknown } => {
  try {
    return { value: read() };
  } catch (error) {
    return { error };
  }
};

test("what JSON.parse refuses is refused; what it takes is taken alike, or refused for a reason of our own", () => {
  const marks = '{}[],:"\\ \n\t\u0001e+-.0123456789truefalsnu/bé😀';
  const fragments = fc.constantFrom(...marks.split(""), "\\u00e9", "null", '"a"');
  fc.assert(
    fc.property(fc.array(fragments, { maxLength: 12 }), (parts) => {
      const text = parts.join("");
      fc.pre(text.isWellFormed());
      const theirs = attempt(() => JSON.parse(text));
      const ours = attempt(() => plain(parse(text)));
      if ("value" in ours) expect(ours).toEqual(theirs);
      else {
        expect(ours.error).toMatchObject({ code: "MALFORMED_JSON" });
        if ("value" in theirs) expect(String(ours.error)).toMatch(/twice|deeper|surrogate/);
      }
    }),
    { numRuns: 2000 },
  );
});

describe("MALFORMED_JSON", () => {
  test.each([
    ["nothing", ""],
    ["white space", " "],
    ["a byte order mark", "\uFEFF{}"],
    ["a second value", "{} {}"],
    ["a trailing comma", '{"a":1,}'],
    ["a comma in an array", "[1,]"],
    ["single quotes", "{'a':1}"],
    ["a bare name", "{a:1}"],
    ["a comment", "{/**/}"],
    ["a leading zero", "01"],
    ["a plus", "+1"],
    ["no digit behind the point", "1."],
    ["no digit before the point", ".5"],
    ["NaN", "NaN"],
    ["a word that is cut off", "tru"],
    ["a word that goes on", "truefalse"],
    ["a control character in a string", '"\u0001"'],
    ["a line feed in a string", '"\n"'],
    ["an unknown escape", '"\\x41"'],
    ["an escape that is cut off", '"\\u12"'],
    ["an endless string", '"abc'],
    ["an endless object", '{"a":1'],
    ["a lone surrogate", '"\\ud800"'],
    ["surrogates in the wrong order", '"\\udc00\\ud800"'],
    ["a lone surrogate in a name", '{"\\ud800":1}'],
    ["a member twice", '{"a":1,"b":2,"a":3}'],
    ["a member twice by an escape", '{"a":1,"\\u0061":1}'],
    ["a non-breaking space", "\u00A0{}"],
  ])("%s", (_what, text) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: "MALFORMED_JSON" }));
  });

  test.each([
    ["a lone continuation byte", [0x22, 0x80, 0x22]],
    ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
  ])("bytes that are no UTF-8: %s", (_what, bytes) => {
    expect(() => parseJson(Uint8Array.from(bytes), 16)).toThrow(expect.objectContaining({ code: "MALFORMED_JSON" }));
  });

  test("a byte order mark, which editors hide, is told by its name", () => {
    expect(() => parse("\uFEFF{}")).toThrow(/byte order mark/);
  });

  test("nesting beyond the limit, of arrays and objects alike", () => {
    const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${"}]".repeat(depth / 2)}`;
    expect(() => parse(nested(16))).not.toThrow();
    expect(() => parse(`[${nested(16)}]`)).toThrow(/deeper than 16/);
    expect(() => parse("[".repeat(60_000))).toThrow(/deeper than 16/);
    expect(() => parse(`[${Array(50).fill("[]").join(",")}]`, 2)).not.toThrow(); // beside is not below
  });
});

test("names such as __proto__ are data", () => {
  const value = parse('{"__proto__":{"admin":true},"constructor":1}') as ReadonlyMap<string, JsonValue>;
  expect([...value.keys()]).toEqual(["__proto__", "constructor"]);
});

test("escapes and surrogate pairs", () => {
  expect(parse('"\\ud83d\\ude00\\n\\"\\/\\u0000é"')).toBe('😀\n"/\0é');
});

test("numbers keep their text", () => {
  for (const text of ["9007199254740993", "-0", "1.0", "1e400", "1E-400", "0.10"])
    expect(parse(text)).toEqual(new JsonNumber(text));
});
