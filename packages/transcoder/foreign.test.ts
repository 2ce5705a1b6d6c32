/** A service that nothing here has heard of, served from its annotations alone, with a catalogue of errors. */
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileLibrary, enumOf, serviceOf } from "./fixtures/compile.ts";
import { serve } from "./fixtures/server.ts";

const service = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
const reasons = enumOf(compileLibrary(), "foreign.library.v1.Reason");

type Fields = Record<string, unknown>;
let seen: Fields = {};

// The messages of a service that is compiled at run time have no types.
const remember = (request: unknown): Fields => {
  seen = request as Fields;
  return seen;
};

const implementation = {
  listBooks(request: unknown) {
    remember(request);
    return { books: [{ isbn: 1n }, { isbn: 2n }], nextPageToken: "a b&c" };
  },
  getBook(request: unknown) {
    const { isbn } = remember(request);
    if (isbn === 404n) throw new ConnectError("nothing here", Code.NotFound);
    const revision = isbn === 98n ? "日" : isbn === 97n ? "a\nb" : '"7"';
    return { isbn, title: "The Origin", revision, genre: 2 };
  },
  addBook: (request: unknown) => ({ book: { ...(remember(request).book as Fields), isbn: 5n, revision: '"1"' } }),
  changeBook: (request: unknown) => ({ book: { isbn: remember(request).isbn } }),
  touchBook: (request: unknown) => ({ book: { isbn: remember(request).isbn } }),
  catalogue(request: unknown) {
    const { isbn, card } = remember(request) as { isbn: bigint; card: { title: string; keeper?: Fields } };
    const keeper = { name: "Ann", number: 7n };
    return { card: { isbn, title: card.title, keeper, readers: [keeper], revision: '"1"' } };
  },
  stamp(request: unknown) {
    remember(request);
    return {};
  },
  sort: (request: unknown) => ({
    numbers: [...(remember(request).numbers as bigint[])].sort((a, b) => (a < b ? -1 : 1)),
  }),
};

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  const errors = { catalogue: { reasons, domain: "library" } };
  const options = { basePath: "/api", errors, ignoreUnknown: true, pathFieldsFromPathOnly: true };
  server = await serve(service, implementation as never, options);
}, 60_000);
afterAll(() => server.app.close());

const call = (path: string, init?: RequestInit) => server.call(`/api${path}`, init);
const json = (method: string, body: string, headers: Record<string, string> = {}): RequestInit => ({
  method,
  body,
  headers: { "content-type": "application/json", ...headers },
});

test("an int64 in the path and a whole message as the answer", async () => {
  const { status, text, headers } = await call("/books/-9223372036854775808");
  expect(status).toBe(200);
  expect(text).toContain('"isbn":-9223372036854775808,"title":"The Origin"');
  expect(text).toContain('"genre":"field_guide"');
  expect(text).not.toContain("revision");
  expect(headers.get("etag")).toBe('"7"');
  expect(headers.get("link")).toBe('</api/books?isbn=-9223372036854775808>; rel="successor-version"');
  expect(headers.get("deprecation")).toBe("@1577836800");
  expect(headers.get("sunset")).toBe("Tue, 01 Jan 2030 00:00:00 GMT");
});

test("a query of every kind of field", async () => {
  const { status, headers } = await call(
    "/shelves/7/books?limit=99999999999999999999&edition=1,18446744073709551615&edition=3&genre=novel&lent=true&weight=1e3&title=a%20+b&pageToken=&ascending=x&other=1",
  );
  expect(status).toBe(200);
  expect(seen).toMatchObject({
    shelf: 7n,
    limit: 4294967295,
    edition: [1n, 18446744073709551615n, 3n],
    genre: [1],
    lent: true,
    weight: 1000,
    title: "a  b",
    pageToken: "",
    order: { case: "ascending", value: "x" },
  });
  expect(headers.get("link")).toMatch(
    /^<\/api\/shelves\/7\/books\?limit=4294967295&((?!other=).)*&pageToken=a%20b%26c>; rel="next"$/,
  );
});

test("a comma in a text is one, also where there may be several texts", async () => {
  expect((await call("/books?shelf=3&subject=cats%2C%20dogs&subject=fish")).status).toBe(200);
  expect(seen.subject).toEqual(["cats, dogs", "fish"]);
});

test.each([
  ["NaN", Number.NaN],
  ["-Infinity", Number.NEGATIVE_INFINITY],
])("%s is a number, as in proto3 JSON", async (text, value) => {
  expect((await call(`/books?shelf=3&weight=${text}`)).status).toBe(200);
  expect(seen.weight).toBe(value);
});

test("an additional binding, where what was in the path is a parameter", async () => {
  const { text } = await call("/books?shelf=3");
  expect(seen.shelf).toBe(3n);
  expect(JSON.parse(text)).toHaveLength(2);
});

test.each([
  ["shelf=", "shelf: must not be empty"],
  ["limit=0", "limit: must be greater than or equal to 1"],
  ["limit=1.0", "limit: must be an integer"],
  ["limit=1&limit=2", "limit: must not be given twice"],
  ["edition=1,,2", "edition: must not be empty"],
  ["edition=-1", "edition: must be from 0 to 18446744073709551615"],
  [`edition=${"1,".repeat(100)}1`, "edition: must contain no more than 100 item(s)"],
  ["genre=NOVEL", "genre: must be one of novel, field_guide"],
  ["genre=unspecified", "genre: must be one of novel, field_guide"],
  ["lent=1", "lent: must be true or false"],
  ["weight=nan", "weight: must be a number"],
  ["weight=1e400", "weight: must be from -1.7976931348623157e+308 to 1.7976931348623157e+308"],
  ["title=%00", "title: must not contain U+0000"],
  ["title=123456", "title: must be at most 5 characters"],
  ["ascending=a&descending=b", "descending: must not be given together with another of ascending, descending"],
])("INVALID_QUERY: %s", async (query, message) => {
  const { status, text } = await call(`/books?${query}`);
  expect(JSON.parse(text)).toEqual({ code: "INVALID_QUERY", message, status: 400 });
  expect(status).toBe(400);
});

test("a created record: status, Location, ETag, a header field and a parameter beside the body", async () => {
  const { status, headers, text } = await call(
    "/shelves/9/books?dryRun=true",
    json("POST", '{"title":"T","isbn":"ignored","uint64":18446744073709551615,"readers":{"true":{"name":"A"}}}', {
      "idempotency-key": "k1",
    }),
  );
  expect(status).toBe(201);
  expect(headers.get("location")).toBe("/api/books/5");
  expect(headers.get("etag")).toBe('"1"');
  expect(JSON.parse(text)).toMatchObject({ isbn: 5, title: "T", readers: { true: { name: "A", teachers: [] } } });
  expect(text).toContain('"uint64":18446744073709551615');
  expect(seen).toMatchObject({ shelf: 9n, dryRun: true, key: "k1" });
});

test("rules are told where the caller finds the fault, the first part of the request first", async () => {
  const wrong = (path: string, body: string, key = "k") =>
    call(path, json("POST", body, { "idempotency-key": key })).then(({ text }) => JSON.parse(text));
  const [path, badPath, body, badBody] = ["/shelves/9/books", "/shelves/1000/books", "{}", '{"tags":["a",""]}'];
  expect(await wrong(badPath, "{", "12345678901")).toEqual({
    code: "INVALID_HEADER",
    message: "Idempotency-Key: must be at most 10 characters",
    status: 400,
  });
  expect(await wrong(badPath, "{")).toEqual({
    code: "INVALID_ID",
    message: "shelf: must be less than 1000",
    status: 400,
  });
  expect(await wrong(`${path}?dryRun=x`, "{")).toMatchObject({ code: "INVALID_QUERY" });
  expect(await wrong(path, "{")).toMatchObject({ code: "MALFORMED_JSON" });
  expect(await wrong(path, badBody)).toEqual({
    code: "VALIDATION_FAILED",
    message: "tags[1]: must be at least 1 characters",
    status: 400,
  });
  expect(await wrong(path, body)).toMatchObject({ isbn: 5 });
});

test("PUT has no mask, PATCH names what it touches, null removes", async () => {
  await call("/books/1", json("PUT", '{"text":"a","words":["x"]}'));
  expect(seen).toMatchObject({ isbn: 1n, note: { text: "a", words: ["x"] } });
  expect(seen.updateMask).toBeUndefined();

  await call(
    "/books/1",
    json("PATCH", '{"page":null,"at":null,"words":["y"],"color":1}', { "if-match": 'W/"3", "4"' }),
  );
  expect(seen).toMatchObject({
    updateMask: { paths: ["page", "at", "words"] },
    note: { words: ["y"] },
    revision: 'W/"3", "4"',
  });
  expect((seen.note as Fields).page).toBeUndefined();

  const merge = { "content-type": "application/merge-patch+json" };
  expect((await call("/books/1", { method: "PATCH", body: '{"page":1}', headers: merge })).status).toBe(200);
});

const NOTHING_TO_CHANGE =
  "The body names no member that can be changed: it must name at least one of text, page, words, at";
test.each([
  ["PUT", '{"text":"a","page":null}', "page: must not be null"],
  ["PUT", "{}", "text: is required"],
  ["PATCH", '{"text":null}', "text: must not be null"],
  ["PATCH", '{"text":"123456"}', "text: must be at most 5 characters"],
  ["PATCH", '{"words":[null]}', "words[0]: must not be null"],
  ["PATCH", "[]", "The body must be an object"],
  ["PATCH", "{}", NOTHING_TO_CHANGE],
  ["PATCH", '{"colour":1,"isbn":2}', NOTHING_TO_CHANGE],
])("%s %s", async (method, body, message) => {
  const { text } = await call("/books/1", json(method, body));
  expect(JSON.parse(text)).toEqual({ code: "VALIDATION_FAILED", message, status: 400 });
});

test("a mask that is empty goes to a service that says that it changes nothing then", async () => {
  for (const body of ["{}", '{"colour":1}']) {
    seen = {};
    expect((await call("/notes/1", json("PATCH", body))).status).toBe(200);
    expect(seen).toMatchObject({ isbn: 1n, updateMask: { paths: [] } });
  }
});

const strictly = (method: string, body: string) => json(method, body, { prefer: "handling=strict" });

test("what was answered can be sent back under strict handling: members that only answers have are not looked at", async () => {
  const { text } = await call("/cards/3", json("PUT", '{"title":"T"}'));
  const shown = '{"isbn":3,"title":"T","keeper":{"name":"Ann","number":7},"readers":[{"name":"Ann","number":7}]}';
  expect(text).toBe(shown);
  expect((await call("/cards/3", strictly("PUT", shown))).text).toBe(shown);
  expect(seen.card).toMatchObject({ title: "T", keeper: { name: "Ann" }, readers: [{ name: "Ann" }] });
  expect((await call("/cards/3", strictly("PUT", '{"isbn":"x","keeper":{"number":null}}'))).status).toBe(200);
  await call("/books/1", strictly("PATCH", '{"page":2,"isbn":1,"title":"T"}'));
  expect(seen).toMatchObject({ updateMask: { paths: ["page"] } });
});

test.each([
  ["PUT", "/cards/3", '{"title":"T","colour":1}', "colour"],
  ["PUT", "/cards/3", '{"keeper":{"name":"Ann","age":1}}', "keeper.age"],
  ["PUT", "/cards/3", '{"readers":[{},{"number":1,"title":"Dr"}]}', "readers[1].title"],
  ["PUT", "/cards/3", '{"revision":"1"}', "revision"],
  ["PATCH", "/books/1", '{"page":1,"colour":1}', "colour"],
  ["POST", "/books/3/stamps/x", '{"day":1,"isbn":3}', "isbn"],
])("UNKNOWN_FIELD under strict handling: %s %s %s", async (method, path, body, member) => {
  const { text } = await call(path, strictly(method, body));
  expect(JSON.parse(text)).toEqual({ code: "UNKNOWN_FIELD", message: `${member}: is not known here`, status: 400 });
});

test.each([
  ['handling="strict"', "UNKNOWN_FIELD"],
  ['x="a, handling=lenient", handling=strict', "UNKNOWN_FIELD"],
  ['handling="str,ict"', undefined],
  ['x="a, handling=strict", y', undefined],
  ['x="\\", handling=strict, \\""', undefined],
])("a preference ends at a comma that is in no quotes: %s", async (prefer, code) => {
  const { text } = await call("/cards/3", json("PUT", '{"title":"T","colour":1}', { prefer }));
  expect(JSON.parse(text).code).toBe(code);
});

test("the whole body with fields in the path; an answer without a body", async () => {
  const { status, text } = await call("/books/3/stamps/a%2Fb%20c", json("POST", '{"day":1,"ink":["red"],"isbn":9}'));
  expect([status, text]).toEqual([204, ""]);
  expect(seen).toMatchObject({ isbn: 3n, by: "a/b c", day: 1, ink: ["red"] });
  const wrong = await call("/books/3/stamps/x", json("POST", '{"day":0}'));
  expect(JSON.parse(wrong.text).message).toBe("day: must be greater than or equal to 1");
});

test("a list as the body, both ways", async () => {
  const { text } = await call("/sort", json("POST", "[9223372036854775807,-9223372036854775808,1e1]"));
  expect(text).toBe("[-9223372036854775808,10,9223372036854775807]");
  const wrong = await call("/sort", json("POST", "[1,1.5]"));
  expect(JSON.parse(wrong.text).message).toBe("[1]: must be an integer");
});

test("what the service says that makes no sense is 502, and tells nothing", async () => {
  for (const id of [97, 98, 404]) {
    const { status, text } = await call(`/books/${id}`);
    expect(status).toBe(502);
    expect(JSON.parse(text)).toEqual({
      code: "UPSTREAM_ERROR",
      message: "A service gave an answer that can't be understood.",
      status: 502,
    });
  }
});

test("RPCs without an HTTP rule have no route", async () => {
  expect((await call("/hidden")).status).toBe(404);
  expect((await server.call("/books/1")).status).toBe(404);
});
