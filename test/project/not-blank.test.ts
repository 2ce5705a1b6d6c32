/** What a name may be, in the words of the document: the same in every language that checks it. */
import { execFileSync } from "node:child_process";
import { getOption } from "@bufbuild/protobuf";
import { predefined } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { RE2JS } from "@bufbuild/re2";
import { describe, expect, test } from "vitest";
import { not_blank } from "#proto/petstore/common/v1/rules_pb.ts";
import { ecmaPattern } from "../../packages/transcoder/openapi/rules.ts";
import { matchIn } from "../../packages/transcoder/validation/common-rules.ts";
import { exampleToolsMissing, pathFor } from "../harness/example-tools.ts";

const re2 = getOption(not_blank, predefined).cel.flatMap(({ expression }) => matchIn(expression))[0] as string;
const pattern = ecmaPattern(re2) as string;

/** Unicode's White_Space, and NUL. Written as a generator of clients can't. */
const BLANK = "\\x00\\x09-\\x0D\\x20\\x85\\xA0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000";
const meant = `^[^\\x00]*[^${BLANK}][^\\x00]*$`;

const LAST = 0x10ffff;
/** All characters, each half of a pair by itself among them. */
const characters = Array.from({ length: LAST + 1 }, (_, code) => String.fromCodePoint(code));
/** On both sides of every border, with characters of two units, and their halves. */
const bordering = [0, 9, 0xe, 0x20, 0x85, 0xa0, 0x1680, 0x2000, 0x200b, 0x2028, 0x202a, 0x202f, 0x205f, 0x3000]
  .flatMap((code) => [code - 1, code, code + 1])
  .concat(0x61, 0xd7ff, 0xd83d, 0xdc15, 0xe000, 0xffff, 0x10000, 0x1f415, LAST)
  .filter((code) => code >= 0)
  .map((code) => String.fromCodePoint(code));
const pairs = ["", ...bordering.flatMap((first) => bordering.map((second) => first + second))];

test("it can be a literal of JavaScript", () => {
  expect(pattern).toMatch(/^[!-~]+$/);
  // Some generators write what they print with the characters in place of their escapes.
  const printed = pattern.replaceAll(/\\u([\dA-F]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
  expect(printed).not.toMatch(/^[!-~]+$/);
  for (const text of [pattern, printed])
    for (const flags of ["", "u"]) expect(new Function(`return /${text}/${flags}`)().source).toBe(text);
});

describe.each(["", "u"])('with the flags "%s"', (flags) => {
  test.each(Object.entries({ characters, pairs }))("of all %s it takes those that are not blank", (_, texts) => {
    const [ours, theirs] = [new RegExp(pattern, flags), new RegExp(meant, flags)];
    expect(texts.filter((text) => ours.test(text) !== theirs.test(text))).toEqual([]);
  });
});

test("the services take the same", () => {
  const [ours, theirs] = [RE2JS.compile(re2), new RegExp(meant, "u")];
  // They get no halves: UTF-8 has none.
  const texts = [...characters, ...pairs].filter((text) => text.isWellFormed());
  expect(texts.filter((text) => ours.test(text) !== theirs.test(text))).toEqual([]);
});

test.skipIf(exampleToolsMissing)("Python takes the same", () => {
  const script = `
import re, sys
pattern = re.compile(sys.argv[1])
for code in range(${LAST + 1}):
  sys.stdout.write("1" if pattern.search(chr(code)) else "0")`;
  const taken = execFileSync("python", ["-c", script, pattern], {
    env: { ...process.env, PATH: pathFor("python") },
    encoding: "utf8",
    maxBuffer: 2 * LAST,
  });
  const theirs = new RegExp(meant, "u");
  expect(characters.filter((text, code) => (taken[code] === "1") !== theirs.test(text))).toEqual([]);
});
