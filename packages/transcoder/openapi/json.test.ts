/** Values and texts of a document. Texts of a contract end up in the source of clients that others generate: in comments, and patterns in literals. */
import { RE2JS } from "@bufbuild/re2";
import { expect, test } from "vitest";
import { operationsOf } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import { compileProtos, enumOf, serviceOf } from "../fixtures/compile.ts";
import { openApiDocument } from "./document.ts";
import { jsonText, prose } from "./json.ts";
import { re2Text } from "./rules.ts";

const BREAKS = ["\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"];
const NASTY = `ends */ nests /* both /*/ NUL \0 BOM \ufeff spaces \u00a0\u3000 turned \u202e half \ud800${BREAKS.map(
  (sign) => `${sign}evil();`,
).join("")}\r\nnone \uffff`;

const files = compileProtos({
  "nasty.proto": `syntax = "proto3";
    package nasty.v1;
    import "buf/validate/validate.proto";
    import "google/api/annotations.proto";
    import "transcoder/v1/annotations.proto";
    enum Reason { REASON_UNSPECIFIED = 0; REASON_BAD = 1 [(transcoder.v1.error).http_status = 400]; }
    enum Kind { KIND_UNSPECIFIED = 0; KIND_BIG = 1; }
    message Ask {
      string id = 1;
      string kept = 2 [(transcoder.v1.field).header = "Kept"];
    }
    message Thing {
      Kind kind = 1;
      optional string literal = 2 [(buf.validate.field).string.pattern = "^[^\\u2000-\\u2040\\u0085\\u00a0/]*\\n/$"];
      optional string words = 3 [(buf.validate.field).string.pattern = "(?i)a*/\\u2028/*[/*]\\\\/*\\r"];
    }
    service Things {
      option (transcoder.v1.tag) = "All\\u2028*/things";
      rpc GetThing(Ask) returns (Thing) {
        option (google.api.http) = {get: "/things/{id}"};
        option (transcoder.v1.operation).errors = "BAD";
        option (transcoder.v1.operation).deprecation = {
          deprecated_at: "2020-01-01T00:00:00Z" sunset_at: "2030-01-01T00:00:00Z" successor: "/new?*/\\u2028{id}"
        };
      }
    }`,
});
const service = serviceOf(files, "nasty.v1.Things");
const reasons = enumOf(files, "nasty.v1.Reason");
const names = [
  ...["Things", "Things.GetThing", "Thing", "Thing.kind", "Thing.literal", "Ask.id", "Ask.kept", "Kind"],
  ...["Kind.KIND_BIG", "Reason.REASON_BAD"],
].map((name) => `nasty.v1.${name}`);
const document = JSON.parse(
  jsonText(
    openApiDocument(
      {
        operations: operationsOf(service),
        docs: Object.fromEntries(names.map((name) => [name, `About ${name}. ${NASTY}`])),
        files: filesBelow([service.file]),
        reasons,
        deprecation: {},
      },
      { title: NASTY, description: NASTY, version: "1", basePath: "", requestMs: 1, codec: "exact" },
    ),
  ),
);

/** Every text of these members, by its place. */
function* textsBelow(node: object, names: readonly string[], place = ""): Iterable<[place: string, text: string]> {
  for (const [name, member] of Object.entries(node)) {
    if (typeof member === "string" && names.includes(name)) yield [`${place}/${name}`, member];
    if (typeof member === "object" && member !== null) yield* textsBelow(member, names, `${place}/${name}`);
  }
}

const PROSE = ["title", "summary", "description"];
const told = [...textsBelow(document, PROSE), ...document.tags.map(({ name }: { name: string }) => ["tag", name])];

test("every text that the contract has is told", () => {
  const all = told.map(([, text]) => text).join("\n");
  for (const name of names) expect(all).toMatch(new RegExp(`About ${name}\\b`));
  expect(all).toContain("Use `/new?* /\n{id}` instead.");
  expect(document.paths["/things/{id}"].get.tags).toEqual(["All * /things"]);
});

test.each(told)("%s is a comment, of one line or of many", (_, text) => {
  expect(text).not.toMatch(/\*\/|\/\*|(?![\n\t])[\p{Cc}\u2028\u2029\ufeff\uffff\p{Bidi_Control}\p{Cs}]|(?! )\p{Zs}/u);
  expect(new Function(`/** ${text} */\n// ${text.replaceAll("\n", "\n// ")}\nreturn 7`)()).toBe(7);
});

test.each(told.filter(([place]) => !place.endsWith("description")))("%s is one line", (_, text) => {
  expect(text).not.toMatch(/\n/);
});

test("patterns can be literals", () => {
  const patterns = [...textsBelow(document, ["pattern"])].map(([, text]) => text);
  expect(patterns).toContain("^[^\\u2000-\\u2040\\x85\\xA0/]*\\x0A/$");
  for (const one of patterns) {
    expect(one).toMatch(/^[ -~]*$/);
    // Some generators write what they print with the characters in place of their escapes.
    const printed = one.replaceAll(/\\u([\da-f]{4})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
    for (const text of [one, printed])
      expect(new Function(`return /${text.replaceAll("/", "\\/")}/u`)()).toBeInstanceOf(RegExp);
  }
});

test("a pattern in words means the same", () => {
  const { words } = document.components.schemas.Thing.properties;
  const [, shown] = /^Matches `(.*)` \(RE2\)\.$/.exec(words.description) ?? [];
  const [theirs, ours] = ["(?i)a*/\u2028/*[/*]\\/*\r", shown as string].map((one) => RE2JS.compile(one));
  expect(shown).toBe("(?i)a*\\x{2f}\\x{2028}\\x{2f}*[\\x{2f}*]\\x{2f}*\\x{d}");
  for (const text of ["a/\u2028/\r", "A\u2028", "/\u2028//*\r", "/\u2028*//\r", "\u2028/\r", "a/\u2028//x\r"])
    expect([text, ours?.test(text)]).toEqual([text, theirs?.test(text)]);
  expect(re2Text("^\\\\/*\\*/\\\n[a*/]\u{1f415}$")).toBe("^\\\\\\x{2f}*\\*\\x{2f}\\x{a}[a*\\x{2f}]\\x{1f415}$");
});

test("what other languages write is kept", () => {
  const text = "Hunde & Käfer, 犬。\u200d👩‍🚀 `/a/b` 3 * 4 / 5\n\n- \"x\"\t'y' \\d";
  expect(prose(text)).toBe(text);
});

test("integers have all their digits, and what is undefined is left out", () => {
  expect(jsonText({ a: 2n ** 63n, b: [1, null, undefined as never].slice(0, 2), c: undefined, d: "é" })).toBe(
    '{"a":9223372036854775808,"b":[1,null],"d":"é"}',
  );
});

test.each(["\x7f", "\x80", "\x85", "\x9f", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff"])(
  "%j is escaped, for readers of YAML would refuse it or take it for a line break",
  (sign) => {
    const text = jsonText({ [`a${sign}`]: `b${sign}` });
    expect(text).not.toContain(sign);
    expect(JSON.parse(text)).toEqual({ [`a${sign}`]: `b${sign}` });
  },
);
