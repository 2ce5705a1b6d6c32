/**
 * What reads callers' text takes time in proportion to its length. Two things together show it: no regular expression of
 * the sources backtracks for more than linear time, and the steps of every reader grow no faster than the text.
 */
import { globSync, readFileSync } from "node:fs";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Operation, operationsOf, splitTarget } from "connect-transcoder";
import { excerpt } from "connect-transcoder/excerpt";
import { validate } from "connect-transcoder/validation";
import { analyse } from "scslre";
import { describe, expect, test } from "vitest";
import { parseAst } from "vitest/node";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { ListPetsRequestSchema, PetService, UpdatePetRequestSchema } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { EXACT } from "../../packages/transcoder/contract/codec.ts";
import { parseTimestamp } from "../../packages/transcoder/contract/well-known.ts";
import { parseEntityTags } from "../../packages/transcoder/policy/conditional.ts";
import { bodyTypesOf, checkContentType, parseAccept, weightOf } from "../../packages/transcoder/policy/media.ts";
import { inputReader, prefersStrict, TIMEOUT_HEADERS, timeoutReader } from "../../packages/transcoder/request/input.ts";
import { parseJson } from "../../packages/transcoder/request/json.ts";
import { formatQuery, isWellEncoded, parseQuery } from "../../packages/transcoder/request/parameters.ts";
import { REQUEST_ID_PATTERN } from "../../packages/transcoder/request/request-id.ts";
import { toInteger } from "../../packages/transcoder/request/scalars.ts";
import { readPage } from "../../services/records/page.ts";
import { countSteps } from "./step-counter.ts";

describe("regular expressions", () => {
  interface Pattern {
    readonly source: string;
    readonly flags: string;
  }

  /** Why a backtracking engine may take more than linear time for it. */
  const troublesOf = ({ source, flags }: Pattern): string[] =>
    analyse({ source, flags }).reports.map(({ type }) => `/${source}/${flags} ${type}`);

  const isTest = (path: string) => /\.test\.ts$|\/(fixtures|conformance)\//.test(path);
  // The document is made of the contract, at the start.
  const isOfTheContract = (path: string) => path.startsWith("packages/transcoder/openapi/");
  const sources = globSync("{gateway,packages,processes,services,launcher}/**/*.ts").filter(
    (path) => !isTest(path) && !isOfTheContract(path),
  );

  /** Literals of a source, and how many expressions it makes in another way. */
  function expressionsIn(path: string, text: string): { literals: Pattern[]; made: number } {
    const literals: Pattern[] = [];
    let made = 0;
    JSON.stringify(parseAst(text, { lang: "ts" }, path), (_, node) => {
      if (node?.type === "Literal" && node.regex)
        literals.push({ source: node.regex.pattern, flags: node.regex.flags });
      if (/^(New|Call)Expression$/.test(node?.type) && node.callee.name === "RegExp") made++;
      return typeof node === "bigint" ? String(node) : node;
    });
    return { literals, made };
  }

  test("none of the sources' backtracks for more than linear time", () => {
    const found = sources.map((path) => ({ path, ...expressionsIn(path, readFileSync(path, "utf8")) }));
    const all = found.flatMap(({ literals }) => literals);
    expect(all.length).toBeGreaterThan(20);
    expect(
      found.flatMap(({ path, literals }) => literals.flatMap(troublesOf).map((trouble) => `${path}: ${trouble}`)),
    ).toEqual([]);
    // Those that are not literals: judged here, by what they are made of.
    expect(
      found
        .filter(({ made }) => made > 0)
        .map(({ path }) => path)
        .sort(),
    ).toEqual([
      "packages/runtime/log.ts",
      "packages/transcoder/request/request-id.ts",
      "packages/transcoder/server/unrouted.ts",
    ]);
    const secretMembers = '(?:\\"cookie\\"|\\"x\\-api\\-key\\"):';
    for (const source of [secretMembers, REQUEST_ID_PATTERN, "^/api/pets/[^/]+$", "^/docs/.*$"])
      expect(troublesOf({ source, flags: "" })).toEqual([]);
  });

  test.each([
    ["zeros at the end", /0+$/],
    ["space on both sides of what may be absent", /[ \t]*(?:(?:W\/)?("[\x21\x23-\x7E\x80-\xFF]*"))?[ \t]*(,|$)/y],
    ["nested repetition", /^(a+)+$/],
    ["trimming", /^\s+|\s+$/g],
  ])("one that does is found: %s", (_, pattern) => {
    expect(troublesOf(pattern)).not.toEqual([]);
  });
});

type Reader = (text: string) => unknown;
type TextOf = (length: number) => string;

/** Whatever the reader thinks of it: an error is an answer. */
function attempt(read: Reader, text: string): void {
  try {
    read(text);
  } catch {}
}

const LENGTHS = [4000, 8000, 16_000];
// Twice as long a text may take twice as many steps; four times as many is what must not be.
const MOST_GROWTH = 2.3;

/** The steps for doubling lengths. */
function growth(read: Reader, textsOf: readonly TextOf[], lengths = LENGTHS): number[] {
  const stepsAt = (length: number) => {
    const texts = textsOf.map((textOf) => textOf(length));
    return countSteps(() => {
      for (const text of texts) attempt(read, text);
    });
  };
  stepsAt(100); // what is compiled once
  return lengths.map(stepsAt);
}

const isLinear = (steps: readonly number[]): boolean =>
  steps.slice(1).every((after, i) => after < MOST_GROWTH * (steps[i] as number));

/** Texts that have made readers of their kind slow, by what they are made of. */
const hostile: Readonly<Record<string, TextOf>> = {
  zeros: (n) => "0".repeat(n),
  "zeros and a one": (n) => `${"0".repeat(n)}1`,
  "digits behind a one": (n) => `1${"0".repeat(n)}1`,
  "a fraction of zeros": (n) => `1.${"0".repeat(n)}`,
  "an exponent": (n) => `1e${"9".repeat(n)}`,
  spaces: (n) => " ".repeat(n),
  "spaces and a letter": (n) => `${" ".repeat(n)}x`,
  "a letter between spaces": (n) => `x${" ".repeat(n)}x`,
  tabs: (n) => "\t ".repeat(n / 2),
  letters: (n) => "x".repeat(n),
  commas: (n) => ",".repeat(n),
  "commas and spaces": (n) => " ,".repeat(n / 2),
  quotes: (n) => '"'.repeat(n),
  "a quote and commas": (n) => `"${",".repeat(n)}`,
  "entity tags": (n) => '"1", '.repeat(n / 5),
  "weak tags": (n) => 'W/"1",'.repeat(n / 6),
  semicolons: (n) => `application/json${";".repeat(n)}`,
  parameters: (n) => `application/json${";a=b".repeat(n / 4)}`,
  "spaces in a parameter": (n) => `application/json;${" ".repeat(n)}x`,
  "a quoted parameter": (n) => `application/json;a="${"\\x".repeat(n / 2)}`,
  "media types": (n) => "a/b;q=0.1,".repeat(n / 10),
  preferences: (n) => "handling=x;a,".repeat(n / 13),
  slashes: (n) => "/".repeat(n),
  percents: (n) => "%".repeat(n),
  "encoded characters": (n) => "%41".repeat(n / 3),
  ampersands: (n) => "&".repeat(n),
  "equals signs": (n) => "=".repeat(n),
  "a parameter many times": (n) => "status=available&".repeat(n / 17),
  "parameters of their own": (n) => Array.from({ length: n / 10 }, (_, i) => `p${i}=1`).join("&"),
  "values of a list": (n) => `status=${"available,".repeat(n / 10)}`,
  "a timestamp": (n) => `2027-12-31T23:59:59.${"1".repeat(n)}Z`,
  base64: (n) => "MS5BQUFB".repeat(n / 8),
  dogs: (n) => "\u{1f415}".repeat(n / 2),
  "lone surrogates": (n) => "\ud83d".repeat(n),
  "JSON: a list": (n) => `[${"0,".repeat(n / 2)}0]`,
  "JSON: brackets": (n) => "[".repeat(n),
  "JSON: a text": (n) => `"${"x".repeat(n)}"`,
  "JSON: a text that does not end": (n) => `"${"\\\\".repeat(n / 2)}`,
  "JSON: escapes": (n) => `"${"\\u0041".repeat(n / 6)}"`,
  "JSON: members": (n) => `{${Array.from({ length: n / 8 }, (_, i) => `"m${i}":1`).join(",")}}`,
  "JSON: a name": (n) => `{"name":"${"x".repeat(n)}","categoryId":1}`,
  "JSON: a blank name": (n) => `{"name":"${" ".repeat(n)}","categoryId":1}`,
  "JSON: a name of dogs": (n) => `{"name":"${"\u{1f415}".repeat(n / 2)}","categoryId":1}`,
  "JSON: an identifier of zeros": (n) => `{"categoryId":1${"0".repeat(n)}}`,
  "JSON: an identifier's fraction": (n) => `{"categoryId":1.${"0".repeat(n)}1}`,
  "JSON: a time": (n) => `{"shipDate":"2027-12-31T23:59:59.${"0".repeat(n)}Z"}`,
  "JSON: a status": (n) => `{"status":"${"x".repeat(n)}"}`,
};

const operations = [PetService, CategoryService, OrderService].flatMap(operationsOf);
const operationOf = (verb: string, path: string): Operation => {
  const found = operations.find((one) => one.verb === verb && one.path === path);
  if (!found) throw new Error(`There is no ${verb} ${path}`);
  return found;
};
const compile = (verb: string, path: string) =>
  inputReader(operationOf(verb, path), { basePath: "", maxDepth: 16, codec: EXACT });
const nothing = { headers: {}, body: undefined, strict: true };
const bodyTypes = bodyTypesOf(operationOf("POST", "/pets"), true);
const readTimeout = timeoutReader(TIMEOUT_HEADERS, 10_000);
const type = { "content-type": "application/json" };

const listPets = compile("GET", "/pets");
const getPet = compile("GET", "/pets/{petId}");
const deletePet = compile("DELETE", "/pets/{petId}");
const bodies = (
  ["POST /pets", "PATCH /pets/{petId}", "POST /categories", "PATCH /store/orders/{orderId}"] as const
).map((name) => {
  const [verb = "", path = ""] = name.split(" ");
  const read = compile(verb, path);
  const target = path.replace(/\{\w+\}/, "1");
  return [
    `the body of ${name}`,
    (text: string) => read({ ...nothing, target, headers: type, body: Buffer.from(text) }),
  ] as const;
});

const readers: readonly (readonly [name: string, read: Reader])[] = [
  ["JSON", (text) => parseJson(Buffer.from(text), 16)],
  ["numbers", (text) => /^-?\d+(\.\d+)?(e\d+)?$/.test(text) && toInteger(text)],
  ["request targets", splitTarget],
  ["percent-encoding", isWellEncoded],
  ["queries", (text) => formatQuery(parseQuery(text))],
  ["the query of a list", (text) => listPets({ ...nothing, target: `/pets?${text}` })],
  ["lenient queries", (text) => listPets({ ...nothing, target: `/pets?${text}`, strict: false })],
  ["identifiers in a query", (text) => listPets({ ...nothing, target: `/pets?id=${text}` })],
  ["page tokens", (text) => listPets({ ...nothing, target: `/pets?pageToken=${text}` })],
  ["paths", (text) => getPet({ ...nothing, target: `/pets/${text}` })],
  ["If-Match", (text) => deletePet({ ...nothing, target: "/pets/1", headers: { "if-match": text } })],
  ["Idempotency-Key", (text) => keyed({ "idempotency-key": text })],
  ["If-None-Match", (text) => parseEntityTags("If-None-Match", text)],
  ["Accept", (text) => weightOf(parseAccept(text), "application/json")],
  ["Prefer", prefersStrict],
  ["X-Server-Timeout", (text) => readTimeout({ "x-server-timeout": text })],
  ["Grpc-Timeout", (text) => readTimeout({ "grpc-timeout": text })],
  ["Content-Type", (text) => checkContentType({ "content-type": text }, bodyTypes)],
  ["Content-Encoding", (text) => checkContentType({ "content-encoding": text, ...type }, bodyTypes)],
  ["timestamps", parseTimestamp],
  ["excerpts", (text) => excerpt(text, 1000)],
  ["page tokens at the service", (text) => pageOf(text)],
  ...bodies,
];
const createCategory = compile("POST", "/categories");
const keyed = (headers: Record<string, string>) =>
  createCategory({
    ...nothing,
    target: "/categories",
    headers: { ...type, ...headers },
    body: Buffer.from('{"name":"x"}'),
  });
/** A token is read before anything is waited for. */
const pageOf = (pageToken: string) =>
  readPage(
    { pageToken },
    { maxSize: 100, filter: [], ids: [], getMany: async () => [], list: async () => [], matches: () => true },
  ).catch(() => {});

test.each(readers)("%s: the steps grow no faster than the text", (_, read) => {
  const steps = growth(read, Object.values(hostile));
  // All texts at once, for counting takes its time; each by itself when it must be said which.
  const slow = isLinear(steps) ? [] : Object.entries(hostile).filter(([, textOf]) => !isLinear(growth(read, [textOf])));
  expect(slow.map(([name]) => name)).toEqual([]);
});

test.each<[string, Reader]>([
  ["looks at the rest for every character", (text) => [...text].filter((_, i) => text.slice(i).includes("#"))],
  ["looks at all that came before", (text) => [...text].filter((one, i, all) => all.indexOf(one) === i)],
  [
    "walks back for every character",
    (text) => {
      let found = 0;
      for (let i = 0; i < text.length; i++) for (let j = i; j > 0 && text[j] === text[i]; j--) found++;
      return found;
    },
  ],
])("a reader that %s is found", (_, read) => {
  expect(isLinear(growth(read, [hostile.zeros as TextOf], [500, 1000, 2000]))).toBe(false);
});

describe("rules", () => {
  const pets = (init: MessageInitShape<typeof ListPetsRequestSchema>) => () =>
    validate(ListPetsRequestSchema, create(ListPetsRequestSchema, init));
  const update = (init: MessageInitShape<typeof UpdatePetRequestSchema>) => () =>
    validate(UpdatePetRequestSchema, create(UpdatePetRequestSchema, init));

  test.each<[string, (length: number) => () => unknown]>([
    ["statuses", (length) => pets({ status: Array(length).fill(0) })],
    ["identifiers", (length) => pets({ id: Array(length).fill(1n) })],
    ["a page token", (length) => pets({ pageToken: "x".repeat(length) })],
    ["a name", (length) => update({ pet: { name: " ".repeat(length), categoryId: 1n } })],
    ["a name of dogs", (length) => update({ pet: { name: "\u{1f415}".repeat(length), categoryId: 1n } })],
    ["entity tags", (length) => update({ pet: { name: "x", categoryId: 1n }, etag: '"1",'.repeat(length) })],
    ["a mask", (length) => update({ pet: {}, updateMask: { paths: Array(length).fill("name") } })],
  ])("are through with %s as soon as there is too much", (_, of) => {
    const [little, much] = [of(5000), of(80_000)];
    little(); // what is compiled once
    expect(countSteps(much)).toBeLessThan(1.5 * countSteps(little));
  });
});
