/** Decoding and encoding together, on a message that has every kind of field. */
import { create, type DescMessage, equals, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EXACT } from "./contract/codec.ts";
import { compileLibrary } from "./fixtures/compile.ts";
import { membersReader } from "./request/decode.ts";
import { parseJson } from "./request/json.ts";
import { messageWriter } from "./response/encode.ts";

const registry = compileLibrary();
const messageNamed = (name: string) => registry.getMessage(`foreign.library.v1.${name}`) as DescMessage;
const Book = messageNamed("Book");
const write = messageWriter(Book, EXACT);
const readMembers = membersReader(Book.fields, EXACT);

function read(text: string, { strict = false } = {}): Message & Record<string, unknown> {
  const message = create(Book);
  readMembers(message, parseJson(new TextEncoder().encode(text), 16), { strict, jsonNamesOnly: false, depth: 1 });
  return message as Message & Record<string, unknown>;
}

const problem = (text: string, options?: { strict: boolean }): string => {
  try {
    read(text, options);
  } catch (error) {
    return (error as { sentence: string }).sentence;
  }
  return "none";
};

const signed = (bits: bigint) => ({ min: -(2n ** (bits - 1n)), max: 2n ** (bits - 1n) - 1n });
const unsigned = (bits: bigint) => ({ min: 0n, max: 2n ** bits - 1n });
const integers = {
  int32: signed(32n),
  sint32: signed(32n),
  sfixed32: signed(32n),
  uint32: unsigned(32n),
  fixed32: unsigned(32n),
  int64: signed(64n),
  sint64: signed(64n),
  sfixed64: signed(64n),
  uint64: unsigned(64n),
  fixed64: unsigned(64n),
};

describe.each(Object.entries(integers))("%s", (name, { min, max }) => {
  test("every value of its range goes through JSON and binary unchanged", () => {
    fc.assert(
      fc.property(fc.oneof(fc.bigInt({ min, max }), fc.constantFrom(min, max, min + 1n, max - 1n)), (value) => {
        const message = read(`{"${name}":${value}}`);
        expect(BigInt(message[name] as bigint)).toBe(value);
        expect(write(fromBinary(Book, toBinary(Book, message)))).toContain(`"${name}":${value},`);
      }),
    );
  });

  test("no value beyond its range is taken", () => {
    const beyond = fc.oneof(
      fc.bigInt({ min: max + 1n, max: max * 4n }),
      fc.bigInt({ min: min - max, max: min - 1n }),
      fc.constantFrom(min - 1n, max + 1n, 10n ** 300n),
    );
    fc.assert(
      fc.property(beyond, (value) => {
        expect(problem(`{"${name}":${value}}`)).toBe(`${name}: must be from ${min} to ${max}`);
      }),
    );
  });

  test.each(['"7"', "true", "[3]", "{}", "1.5", "1e-400", '""'])("%s is no integer", (text) => {
    expect(problem(`{"${name}":${text}}`)).toBe(`${name}: must be an integer`);
  });

  test.each([
    ["1.0", 1],
    ["1e3", 1000],
    ["-0", 0],
    ["100e-2", 1],
  ])("%s is %i", (text, value) => {
    expect(Number(read(`{"${name}":${text}}`)[name])).toBe(value);
  });
});

test("1e400 is out of every range", () => {
  expect(problem('{"int64":1e400}')).toBe("int64: must be from -9223372036854775808 to 9223372036854775807");
  expect(problem('{"double":1e400}')).toMatch(/^double: must be from /);
  expect(problem('{"float":1e39}')).toMatch(/^float: must be from /);
});

test("floating point numbers go through unchanged", () => {
  fc.assert(
    fc.property(fc.double(), fc.float(), (double, float) => {
      const message = create(Book, { double, float } as never);
      const back = read(write(message));
      expect([back.double, back.float]).toEqual([double, float]);
    }),
  );
});

test.each([
  ['{"title":7}', "title: must be a string"],
  ['{"title":null}', "title: must not be null"],
  ['{"subtitle":null}', "subtitle: must not be null"],
  ['{"title":"a\\u0000b"}', "title: must not contain U+0000"],
  ['{"lent":"true"}', "lent: must be true or false"],
  ['{"lent":1}', "lent: must be true or false"],
  ['{"genre":"NOVEL"}', "genre: must be one of novel, field_guide"],
  ['{"genre":1}', "genre: must be one of novel, field_guide"],
  ['{"genre":"unspecified"}', "genre: must be one of novel, field_guide"],
  ['{"genre":"__proto__"}', "genre: must be one of novel, field_guide"],
  ['{"cover":"/w"}', "cover: must be a string in base64 with padding"],
  ['{"cover":"_w=="}', "cover: must be a string in base64 with padding"],
  ['{"cover":"/x=="}', "cover: must be a string in base64 with padding"],
  ['{"double":"1"}', "double: must be a number"],
  ['{"author":[]}', "author: must be an object"],
  ['{"author":{"teachers":[{"teachers":[{"name":1}]}]}}', "author.teachers[0].teachers[0].name: must be a string"],
  ['{"tags":"a"}', "tags: must be an array"],
  ['{"tags":["a",null]}', "tags[1]: must not be null"],
  ['{"editions":[1,-1]}', "editions[1]: must be from 0 to 18446744073709551615"],
  ['{"notes":{"a b":1}}', 'notes["a b"]: must be a string'],
  ['{"notes":{"a":null}}', 'notes["a"]: must not be null'],
  ['{"genres":{"x":"novel"}}', 'genres["x"]: must be an integer'],
  ['{"genres":{"01":"novel"}}', 'genres["01"]: must be an integer'],
  ['{"readers":{"yes":{}}}', 'readers["yes"]: must be true or false'],
  ['{"cloth":"red","threads":1}', "threads: must not be given together with cloth"],
  ['{"printedAt":"2027-02-30T00:00:00Z"}', expect.stringMatching(/^printedAt: must be a date and time/)],
  ['{"printedAt":0}', expect.stringMatching(/^printedAt: must be a date and time/)],
  ["[]", "The body must be an object"],
  ["null", "The body must be an object"],
])("%s", (text, sentence) => {
  expect(problem(text)).toEqual(sentence);
});

test("unknown members are ignored, or errors under strict handling", () => {
  for (const text of ['{"color":1}', '{"revision":"x"}', '{"__proto__":{"title":7}}']) {
    expect(problem(text)).toBe("none");
    expect(problem(text, { strict: true })).toMatch(/: is not known here$/);
  }
  expect(problem('{"author":{"age":1}}', { strict: true })).toBe("author.age: is not known here");
});

test("members that the service assigns are ignored and not validated, also under strict handling", () => {
  expect(read('{"isbn":"x"}', { strict: true }).isbn).toBe(0n);
});

test("a map may hold any name", () => {
  const { notes } = read('{"notes":{"__proto__":"a","constructor":"b"}}') as unknown as { notes: object };
  expect(Object.entries(notes)).toEqual([
    ["__proto__", "a"],
    ["constructor", "b"],
  ]);
  expect(Object.getPrototypeOf(notes)).toBe(Object.prototype);
});

const text = fc
  .string({ unit: "grapheme", maxLength: 8 })
  .filter((value) => value.isWellFormed() && !value.includes("\0"));
const key = text.filter((value) => value !== "__proto__"); // protobuf-es itself loses it in binary
const int64 = fc.bigInt(signed(64n));
const uint64 = fc.bigInt(unsigned(64n));
const genre = fc.constantFrom(1, 2);
const author = fc.record({ name: text, teachers: fc.array(fc.record({ name: text }), { maxLength: 2 }) });
const moment = fc.record({
  seconds: fc.bigInt({ min: -62135596800n, max: 253402300799n }),
  nanos: fc.integer({ min: 0, max: 999_999_999 }),
});
const book = fc.record(
  {
    title: text,
    subtitle: text,
    int64,
    uint64,
    lent: fc.boolean(),
    cover: fc.uint8Array({ maxLength: 9 }),
    genre,
    side: fc.constantFrom(0, 1),
    printedAt: moment,
    author,
    tags: fc.array(text, { maxLength: 3 }),
    editions: fc.array(uint64, { maxLength: 3 }),
    editors: fc.array(author, { maxLength: 2 }),
    notes: fc.dictionary(key, text, { maxKeys: 3 }),
    genres: fc.dictionary(int64.map(String), genre, { maxKeys: 3 }),
    readers: fc.dictionary(fc.constantFrom("true", "false"), author, { maxKeys: 2 }),
    binding: fc.oneof(
      fc.record({ case: fc.constant("cloth"), value: text }),
      fc.record({ case: fc.constant("threads"), value: int64 }),
      fc.record({ case: fc.constant("binder"), value: author }),
    ),
  },
  { requiredKeys: [] },
);

test("a message written as JSON and read again is the same message", () => {
  fc.assert(
    fc.property(book, (init) => {
      const message = create(Book, init as never);
      const json = write(message);
      expect(() => JSON.parse(json)).not.toThrow();
      expect(equals(Book, read(json, { strict: true }), message)).toBe(true);
      expect(equals(Book, fromBinary(Book, toBinary(Book, read(json))), message)).toBe(true);
    }),
  );
});

test("what was never set is absent; fields without presence and lists are always there", () => {
  const shown = JSON.parse(write(create(Book)));
  for (const absent of ["subtitle", "printedAt", "author", "cloth", "threads", "binder", "genre", "revision"])
    expect(shown).not.toHaveProperty(absent);
  expect(shown).toMatchObject({
    isbn: 0,
    title: "",
    lent: false,
    side: "left",
    cover: "",
    tags: [],
    notes: {},
    double: 0,
  });
});
