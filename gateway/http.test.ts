/** The HTTP side of the gateway over a real port: methods, headers, conditions, limits, and the order of checks. */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { defaultConnectionLimits } from "@petstore/rpc/http/connections";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NewPetSchema } from "#proto/petstore/pet/v1/pet_pb.ts";
import { type CreatePetRequest, PetService, type UpdatePetRequest } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { recordIn, sendRaw, startGateway } from "./fixtures/gateway.ts";

let calls = 0;
let requestIds: (string | null)[] = [];
let waiting = "";
let lastUpdate: UpdatePetRequest | undefined;

const pet = (id: bigint) => ({ id, name: "Rex", categoryId: 1n, status: 1, etag: '"3"' });

const implementation = {
  listPets: () => ({ pets: [pet(2n), pet(1n)], nextPageToken: "" }),
  getPet(request: { petId: bigint }, context: { requestHeader: Headers; signal: AbortSignal }) {
    calls += 1;
    requestIds.push(context.requestHeader.get("x-request-id"));
    if (request.petId === 404n) throw failure("PET_NOT_FOUND", Code.NotFound, "There is no pet 404.");
    if (request.petId === 500n) throw new Error("at /srv/secret/driver.ts: mongo said E11000");
    if (request.petId === 13n) {
      waiting = "yes";
      return new Promise<never>((_resolve, reject) => {
        context.signal.addEventListener("abort", () => {
          waiting = "aborted";
          reject(context.signal.reason);
        });
      });
    }
    return { pet: { ...pet(request.petId), ...(request.petId === 77n ? { etag: 'W/"3"' } : {}) } };
  },
  createPet(request: CreatePetRequest, context: { responseHeader: Headers }) {
    if (request.requestId === "again") context.responseHeader.set("idempotent-replayed", "true");
    return { pet: pet(9n) };
  },
  updatePet(request: UpdatePetRequest) {
    lastUpdate = request;
    return { pet: pet(request.petId) };
  },
  deletePet: () => ({}),
};

function failure(reason: string, code: Code, message: string) {
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason, domain: "petstore" }) },
  ]);
}

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  gateway = await startGateway(PetService, implementation as never);
}, 60_000);
afterAll(() => gateway.app.close());

const call = (path: string, init?: RequestInit) => gateway.call(path, init);
const post = (body: BodyInit, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  body,
  headers: { "content-type": "application/json", ...headers },
});
const newPet = JSON.stringify({ name: "Rex", categoryId: 1 });
const codeOf = async (path: string, init?: RequestInit): Promise<string> => {
  const { status, text } = await call(path, init);
  const record = JSON.parse(text);
  expect(Object.keys(record)).toEqual(["code", "message", "status"]);
  expect(record.status).toBe(status);
  return record.code;
};

test("every answer carries X-Request-Id and API-Version", async () => {
  for (const path of ["/pets", "/pets/404", "/pets/x", "/nowhere"]) {
    const { headers } = await call(path);
    expect(headers.get("x-request-id")).toMatch(/^[A-Za-z0-9._:/+=-]{1,128}$/);
    expect(headers.get("api-version")).toBe("1.0.0");
  }
});

test("a sane X-Request-Id is taken over and passed on, another one is replaced", async () => {
  requestIds = [];
  const given = await call("/pets/1", { headers: { "x-request-id": "a.b:c/d+e=f-1" } });
  expect(given.headers.get("x-request-id")).toBe("a.b:c/d+e=f-1");
  const other = await call("/pets/1", { headers: { "x-request-id": "a b" } });
  expect(other.headers.get("x-request-id")).not.toBe("a b");
  expect(requestIds).toEqual(["a.b:c/d+e=f-1", other.headers.get("x-request-id")]);
});

test("HEAD answers like GET, without the body", async () => {
  const [get, head] = [await call("/pets/1"), await call("/pets/1", { method: "HEAD" })];
  expect([head.status, head.text]).toEqual([200, ""]);
  for (const name of ["etag", "content-type", "content-length", "deprecation", "sunset", "link"])
    expect(head.headers.get(name)).toBe(get.headers.get(name));
  expect((await call("/pets/404", { method: "HEAD" })).status).toBe(404);
});

test("OPTIONS and 405 tell what is allowed", async () => {
  const options = await call("/pets/1", { method: "OPTIONS" });
  expect([options.status, options.text]).toEqual([204, ""]);
  expect(options.headers.get("allow")).toBe("DELETE, GET, HEAD, OPTIONS, PATCH, PUT");
  expect(options.headers.get("accept-patch")).toBe("application/merge-patch+json, application/json");
  const wrong = await call("/pets", { method: "DELETE" });
  expect(wrong.status).toBe(405);
  expect(wrong.headers.get("allow")).toBe("GET, HEAD, OPTIONS, POST");
  expect((await call("/nowhere", { method: "OPTIONS" })).status).toBe(404);
});

test.each(["TRACE", "PROPFIND", "M-SEARCH", "QUERY", "PURGE"])("405 for %s, which nobody serves", async (method) => {
  const answer = await sendRaw(gateway.port, `${method} /pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1.1 405 .*\r\n/);
  expect(recordIn(answer)).toMatchObject({ code: "METHOD_NOT_ALLOWED", status: 405 });
});

test("a method that is not registered is told apart from HTTP that can't be read", async () => {
  const ask = async (head: string) => recordIn(await sendRaw(gateway.port, `${head}\r\nHost: x\r\n\r\n`));
  const byMethod = { code: "INVALID_HEADER", message: expect.stringContaining("method is not registered") };
  expect(await ask("BREW /pets HTTP/1.1")).toMatchObject(byMethod);
  expect(await ask("GET /pets HTTP/1.1\r\nA B: c")).not.toMatchObject(byMethod);
});

test.each(["/", "/pets/", "/pets/1/", "//pets", "/pets//", "/Pets", "/pets/1/2", "/pets%2F1", "/%", "/pets/1/%zz"])(
  "404 for %s, whatever the method",
  async (path) => {
    expect(await codeOf(path)).toBe("ROUTE_NOT_FOUND");
    expect((await call(path)).headers.get("deprecation")).toBeNull();
    expect(await codeOf(path, { method: "DELETE" })).toBe("ROUTE_NOT_FOUND");
    expect(await codeOf(path, { ...post("x".repeat(100_000)), headers: {} })).toBe("ROUTE_NOT_FOUND");
  },
);

test("a request target with scheme and host, and one with an encoded letter", async () => {
  const raw = (target: string) =>
    sendRaw(gateway.port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(await raw("http://other.example/pets/1?x=1")).toMatch(/^HTTP\/1.1 200 /);
  expect(await raw("/%70ets/%31")).toMatch(/^HTTP\/1.1 200 /);
  expect(await raw("*")).toMatch(/^HTTP\/1.1 404 /);
});

test.each([
  "x",
  "1.0",
  "+1",
  "01",
  "1e3",
  "%zz",
  "%ff",
  "9223372036854775808",
  "1".repeat(200),
  "-9223372036854775809",
  "%20",
  "1%00",
  "''",
])("INVALID_ID: %s", async (id) => {
  for (const method of ["GET", "DELETE"]) expect(await codeOf(`/pets/${id}`, { method })).toBe("INVALID_ID");
});

test("a deprecated operation says so on errors too; the successor only where there is an id", async () => {
  for (const path of ["/pets/404", "/pets/x"]) {
    const { headers } = await call(path);
    expect(headers.get("deprecation")).toBe("@1793491200");
    expect(headers.get("sunset")).toBe("Fri, 31 Dec 2027 23:59:59 GMT");
  }
  const tooLong = await call(`/pets/1?x=${"y".repeat(9000)}`);
  const tooMuch = await call("/pets/1", { headers: { x: "y".repeat(17_000) } });
  expect([tooLong.status, tooMuch.status]).toEqual([414, 431]);
  for (const { headers } of [tooLong, tooMuch]) {
    expect([headers.get("deprecation"), headers.get("sunset")]).toEqual([
      "@1793491200",
      "Fri, 31 Dec 2027 23:59:59 GMT",
    ]);
    expect(headers.get("link")).toBe('</pets?id=1>; rel="successor-version"');
  }
  expect((await call("/pets/404")).headers.get("link")).toBe('</pets?id=404>; rel="successor-version"');
  expect((await call("/pets/x")).headers.get("link")).toBeNull();
  expect((await call("/pets/1", { method: "DELETE" })).headers.get("deprecation")).toBeNull();
});

test("If-None-Match: weak comparison, lists, anything; what is no tag is an error", async () => {
  const read = (value: string, method = "GET") => call("/pets/1", { method, headers: { "if-none-match": value } });
  for (const value of ['"3"', 'W/"3"', '"1", "3"', ' ,"x" ,, W/"3",', "*"]) {
    const { status, text, headers } = await read(value);
    expect([value, status, text]).toEqual([value, 304, ""]);
    expect(headers.get("etag")).toBe('"3"');
    expect(headers.get("deprecation")).toBe("@1793491200");
  }
  const [changed, same] = [await read('"4"', "HEAD"), await read('"3"', "HEAD")];
  expect([changed.status, same.status]).toEqual([200, 304]);
  expect(same.headers.get("content-length")).toBe(changed.headers.get("content-length"));
  expect((await call("/pets/77", { headers: { "if-none-match": '"3"' } })).status).toBe(304);
  for (const value of ['"4"', '"3,"', 'W/"33"']) expect((await read(value)).status).toBe(200);
  for (const value of ["3", '"3', '"3" "4"', "*, *", 'w/"3"', ","]) {
    const { status, text } = await read(value);
    expect([status, JSON.parse(text).code]).toEqual([400, "INVALID_HEADER"]);
  }
  expect((await call("/pets/404", { headers: { "if-none-match": "*" } })).status).toBe(404);
});

test("If-Match on a read: strong comparison, before If-None-Match; what is no tag is an error", async () => {
  const read = (headers: Record<string, string>, path = "/pets/1", method = "GET") => call(path, { method, headers });
  for (const value of ['"3"', '"1", "3"', ' ,"x" ,, W/"9", "3",', "*"])
    expect([value, (await read({ "if-match": value })).status]).toEqual([value, 200]);
  for (const value of ['"4"', 'W/"3"', '"3,"', '"1", "2"']) {
    const { status, headers, text } = await read({ "if-match": value, "if-none-match": '"3"' });
    expect([value, status, JSON.parse(text).code]).toEqual([value, 412, "ETAG_MISMATCH"]);
    expect(headers.get("deprecation")).toBe("@1793491200");
  }
  expect((await read({ "if-match": '"4"' }, "/pets/1", "HEAD")).status).toBe(412);
  expect((await read({ "if-match": "*", "if-none-match": '"3"' })).status).toBe(304);
  for (const value of ["3", '"3', '"3" "4"', "*, *", 'w/"3"', ",", ""])
    expect([value, await codeOf("/pets/1", { headers: { "if-match": value } })]).toEqual([value, "INVALID_HEADER"]);
  // The service's own tag is weak: nothing matches it strongly.
  expect(await codeOf("/pets/77", { headers: { "if-match": '"3"' } })).toBe("ETAG_MISMATCH");
  expect(await codeOf("/pets/77", { headers: { "if-match": 'W/"3"' } })).toBe("ETAG_MISMATCH");
  expect(await codeOf("/pets/404", { headers: { "if-match": "*" } })).toBe("PET_NOT_FOUND");
});

test("conditions are judged where one record is meant, and nowhere else", async () => {
  const conditions = { "if-match": "x", "if-none-match": "*" };
  expect((await call("/pets", { headers: conditions })).status).toBe(200);
  expect((await call("/pets", post(newPet, conditions))).status).toBe(201);
});

test("If-None-Match on a write goes to the service like If-Match", async () => {
  const put = (value: string) => call("/pets/1", { ...post(newPet, { "if-none-match": value }), method: "PUT" });
  expect((await put('W/"3", "4"')).status).toBe(200);
  expect(lastUpdate).toMatchObject({ ifNoneMatch: 'W/"3", "4"' });
  expect(lastUpdate?.etag).toBeUndefined();
  expect(await codeOf("/pets/1", { method: "DELETE", headers: { "if-none-match": "3" } })).toBe("INVALID_HEADER");
});

test("what caches may keep: what was read, if they ask before they show it, and nothing else", async () => {
  const cacheable = async (path: string, init?: RequestInit) => {
    const { status, headers } = await call(path, init);
    return [status, headers.get("cache-control"), headers.get("vary")];
  };
  expect(await cacheable("/pets")).toEqual([200, "no-cache", "Accept"]);
  expect(await cacheable("/pets/1")).toEqual([200, "no-cache", "Accept"]);
  expect(await cacheable("/pets/1", { method: "HEAD" })).toEqual([200, "no-cache", "Accept"]);
  const held = { headers: { "if-none-match": '"3"' } };
  expect(await cacheable("/pets/1", held)).toEqual([304, "no-cache", "Accept"]);
  expect(await cacheable("/pets", post(newPet))).toEqual([201, "no-store", "Accept"]);
  expect(await cacheable("/pets/1", { ...post(newPet), method: "PUT" })).toEqual([200, "no-store", "Accept"]);
  expect(await cacheable("/pets/1", { method: "DELETE" })).toEqual([204, "no-store", "Accept"]);
  for (const path of ["/pets/404", "/pets/500", "/pets/x", "/pets?limit=0", "/nowhere", `/pets?x=${"y".repeat(9000)}`])
    expect([path, ...(await cacheable(path)).slice(1)]).toEqual([path, "no-store", "Accept"]);
  expect(await cacheable("/pets", { method: "DELETE" })).toEqual([405, "no-store", "Accept"]);
});

test("If-Match is the service's to judge, but must be entity tags", async () => {
  const put = (value: string) =>
    call("/pets/1", { ...post(newPet, { "if-match": value }), method: "PUT" }).then(({ status }) => status);
  expect(await put('W/"3", "4"')).toBe(200);
  expect(lastUpdate?.etag).toBe('W/"3", "4"');
  expect(await put("*")).toBe(200);
  expect(await put("3")).toBe(400);
  expect(await codeOf("/pets/1", { method: "DELETE", headers: { "if-match": "3" } })).toBe("INVALID_HEADER");
});

test("a create: 201, Location, ETag, and whether it is a replay", async () => {
  const first = await call("/pets", post(newPet));
  expect(first.status).toBe(201);
  expect(first.headers.get("location")).toBe("/pets/9");
  expect(first.headers.get("etag")).toBe('"3"');
  expect(first.headers.get("idempotent-replayed")).toBeNull();
  const again = await call("/pets", post(newPet, { "idempotency-key": "again" }));
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  for (const key of ["", "a b", "é", "x".repeat(256)])
    expect(await codeOf("/pets", post(newPet, { "idempotency-key": key }))).toBe("INVALID_HEADER");
});

test("Accept", async () => {
  const accept = (value: string, path = "/pets/1") => call(path, { headers: { accept: value } });
  for (const value of [
    "*/*",
    "application/*",
    "application/json;charset=utf-8",
    "application/problem+json",
    "text/html, */*;q=0.1",
  ]) {
    const { status, headers } = await accept(value);
    expect([value, status, headers.get("content-type")]).toEqual([value, 200, "application/json; charset=utf-8"]);
  }
  for (const value of ["text/html", "application/json;q=0", "nonsense"]) {
    const { status, headers, text } = await accept(value);
    expect([status, JSON.parse(text).code]).toEqual([406, "NOT_ACCEPTABLE"]);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
  }
  const problem = await accept("application/json, application/problem+json", "/pets/404");
  expect(problem.headers.get("content-type")).toMatch(/^application\/problem\+json/);
  expect(JSON.parse(problem.text)).toEqual({
    type: "about:blank",
    title: "Not Found",
    detail: "There is no pet 404.",
    status: 404,
    code: "PET_NOT_FOUND",
    message: "There is no pet 404.",
  });
  expect((await accept("*/*", "/pets/404")).headers.get("content-type")).toMatch(/^application\/json/);
  const excluded = await accept("application/problem+json, application/json;q=0");
  expect(excluded.status).toBe(406);
  expect(excluded.headers.get("content-type")).toMatch(/^application\/problem\+json/);
});

test.each([
  ["application/json, application/problem+json;q=0.5", "json"],
  ["application/problem+json;q=0.5, application/json", "json"],
  ["application/problem+json;q=0.9, */*", "json"],
  ["application/problem+json;q=0, */*", "json"],
  ["application/problem+json;q=0, application/json;q=0.1", "json"],
  ["application/*", "json"],
  ["*/*, application/*;q=0.5", "json"],
  ["text/html", "json"],
  ["application/problem+json", "problem+json"],
  ["application/problem+json;q=0.1", "problem+json"],
  ["application/problem+json, application/json", "problem+json"],
  ["application/json, application/problem+json", "problem+json"],
  ["application/json;q=0.5, application/problem+json;q=0.6", "problem+json"],
  ["*/*, application/problem+json", "problem+json"],
  ["application/json;q=0.5, */*", "problem+json"],
])("Accept: %s takes errors as %s", async (accept, subtype) => {
  const { headers } = await call("/pets/404", { headers: { accept } });
  expect(headers.get("content-type")?.split(";")[0]).toBe(`application/${subtype}`);
});

test.each<[string, RequestInit & { duplex?: string }]>([
  ["another type", post(newPet, { "content-type": "text/plain" })],
  ["a merge patch on POST", post(newPet, { "content-type": "application/merge-patch+json" })],
  ["another charset", post(newPet, { "content-type": "application/json; charset=latin1" })],
  ["no type", { method: "POST", body: new TextEncoder().encode(newPet) }],
  ["a broken type", post(newPet, { "content-type": "json" })],
  ["gzip", post(newPet, { "content-encoding": "gzip" })],
  ["gzip after identity", post(newPet, { "content-encoding": "identity, gzip" })],
  ["no type, in chunks", { method: "POST", body: new Blob([newPet]).stream(), duplex: "half" }],
])("UNSUPPORTED_MEDIA_TYPE: %s", async (_what, init) => {
  expect(await codeOf("/pets", init)).toBe("UNSUPPORTED_MEDIA_TYPE");
});

test("a body without a type is refused for it before anything else of the request", async () => {
  const chunks = { body: new Blob([newPet]).stream(), duplex: "half" };
  expect(await codeOf("/pets/x", { ...chunks, method: "PUT" })).toBe("UNSUPPORTED_MEDIA_TYPE");
  const again = { body: new Blob([newPet]).stream(), duplex: "half" };
  const headers = { "x-server-timeout": "x" };
  expect(await codeOf("/pets", { ...again, method: "POST", headers })).toBe("UNSUPPORTED_MEDIA_TYPE");
});

test.each<[string, RequestInit]>([
  ["of no type", { headers: { "content-type": "undefined" } }],
  ["of another type", { body: "x", headers: { "content-type": "text/plain" } }],
  ["larger than a body may be", { body: "x".repeat(70_000) }],
])("content %s means nothing in a DELETE", async (_, init) => {
  expect((await call("/pets/1", { ...init, method: "DELETE" })).status).toBe(204);
  expect((await call("/pets/1")).status).toBe(200); // on the same connection, perhaps
});

test("content types that are taken, and Accept-Patch on a 415", async () => {
  for (const type of ["application/json", "Application/JSON; Charset=UTF-8", 'application/json;charset="utf-8";v=1'])
    expect((await call("/pets", post(newPet, { "content-type": type, "content-encoding": "identity" }))).status).toBe(
      201,
    );
  const patch = (type: string) => call("/pets/1", { ...post("{}", { "content-type": type }), method: "PATCH" });
  expect((await patch("application/merge-patch+json")).status).toBe(200);
  expect((await patch("application/json")).status).toBe(200);
  const refused = await patch("application/json-patch+json");
  expect(refused.status).toBe(415);
  expect(refused.headers.get("accept-patch")).toBe("application/merge-patch+json, application/json");
});

test("an empty body is MALFORMED_JSON, with a type or without", async () => {
  expect(await codeOf("/pets", { method: "POST" })).toBe("MALFORMED_JSON");
  expect(await codeOf("/pets", post(""))).toBe("MALFORMED_JSON");
  const chunked = "POST /pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  expect(recordIn(await sendRaw(gateway.port, chunked))).toMatchObject({ code: "MALFORMED_JSON" });
});

test("strict handling", async () => {
  const prefer = { prefer: 'respond-async, Handling = "strict"; x=1' };
  expect(await codeOf("/pets?color=red", { headers: prefer })).toBe("UNKNOWN_FIELD");
  expect(await codeOf("/pets", post('{"name":"a","categoryId":1,"color":1}', prefer))).toBe("UNKNOWN_FIELD");
  expect((await call("/pets?color=red", { headers: { prefer: "handling=lenient, handling=strict" } })).status).toBe(
    200,
  );
  expect((await call("/pets?color=red")).status).toBe(200);
});

test("what is wrong with a page token is INVALID_PAGE_TOKEN, but for its being there twice", async () => {
  expect((await call("/pets?pageToken=")).status).toBe(200);
  expect(await codeOf("/pets?pageToken=%00")).toBe("INVALID_PAGE_TOKEN");
  expect(await codeOf("/pets?pageToken=a&pageToken=b")).toBe("INVALID_QUERY");
});

test.each([
  "limit=0",
  "limit=",
  "id=1,,2",
  `id=${"1,".repeat(100)}1`,
  "id=1&id=x",
  "status=Sold",
  "orderBy=name",
  "x=%zz",
  "limit=%ff",
])("INVALID_QUERY: %s", async (query) => {
  expect(await codeOf(`/pets?${query}`)).toBe("INVALID_QUERY");
});

test("X-Server-Timeout", async () => {
  for (const value of ["0", "-1", "1s", "1e1", "", "NaN", "1, 2", "0.0"])
    expect(await codeOf("/pets", { headers: { "x-server-timeout": value } })).toBe("INVALID_HEADER");
  expect((await call("/pets", { headers: { "x-server-timeout": "99999999999999" } })).status).toBe(200);
  expect(await codeOf("/pets/13", { headers: { "x-server-timeout": "0.05" } })).toBe("DEADLINE_EXCEEDED");
});

test("a caller that goes away ends the call", async () => {
  waiting = "";
  const controller = new AbortController();
  const gone = call("/pets/13", { signal: controller.signal }).catch(() => "gone");
  await expect.poll(() => waiting, { timeout: 10_000 }).toBe("yes");
  controller.abort();
  expect(await gone).toBe("gone");
  await expect.poll(() => waiting, { timeout: 5_000 }).toBe("aborted"); // well before the time for the request is up
});

test("413, 414 and 431", async () => {
  const limit = 64 * 1024;
  const padded = (size: number) => newPet + " ".repeat(size - newPet.length);
  expect((await call("/pets", post(padded(limit)))).status).toBe(201);
  expect(await codeOf("/pets", post(padded(limit + 1)))).toBe("PAYLOAD_TOO_LARGE");
  const stream = { ...post(new Blob([padded(2 * limit)]).stream()), duplex: "half" } as RequestInit;
  expect(await codeOf("/pets", stream)).toBe("PAYLOAD_TOO_LARGE");
  const target = (size: number) => `/pets?${"x".repeat(size - "/pets?".length)}`;
  expect((await call(target(8192))).status).toBe(200);
  expect((await call(target(8192), { headers: { big: "x".repeat(15_000) } })).status).toBe(200);
  expect(await codeOf(target(8193))).toBe("URI_TOO_LONG");
  expect(await codeOf("/pets", { headers: { big: "x".repeat(17_000) } })).toBe("HEADERS_TOO_LARGE");
});

test("the order of checks", async () => {
  const long = `?${"x".repeat(9000)}`;
  const wrong: RequestInit = {
    ...post("{".padEnd(70_000), { accept: "text/html", "content-type": "text/plain", "x-server-timeout": "x" }),
  };
  const without = (...names: string[]): RequestInit => ({
    ...wrong,
    headers: Object.fromEntries(Object.entries(wrong.headers as object).filter(([name]) => !names.includes(name))),
  });
  const json = { "content-type": "application/json" };
  expect(await codeOf(`/nowhere${long}`, wrong)).toBe("ROUTE_NOT_FOUND");
  expect(await codeOf(`/pets/x${long}`, wrong)).toBe("METHOD_NOT_ALLOWED");
  expect(await codeOf(`/pets/x${long}`, { ...wrong, method: "PUT" })).toBe("URI_TOO_LONG");
  expect(await codeOf("/pets/x?y=%", { ...wrong, method: "PUT" })).toBe("NOT_ACCEPTABLE");
  expect(await codeOf("/pets/x?y=%", { ...without("accept"), method: "PUT" })).toBe("UNSUPPORTED_MEDIA_TYPE");
  const put = { ...without("accept"), method: "PUT" };
  put.headers = { ...put.headers, ...json };
  expect(await codeOf("/pets/x?y=%", put)).toBe("PAYLOAD_TOO_LARGE");
  expect(await codeOf("/pets/x?y=%", { ...put, body: "{" })).toBe("INVALID_HEADER");
  expect(await codeOf("/pets/x?y=%", { ...put, body: "{", headers: json })).toBe("INVALID_ID");
  expect(await codeOf("/pets/1?y=%", { ...put, body: "{", headers: json })).toBe("INVALID_QUERY");
  expect(await codeOf("/pets/1", { ...put, body: "{", headers: json })).toBe("MALFORMED_JSON");
  expect(await codeOf("/pets/1", { ...put, body: "{}", headers: { ...json, "if-match": "x" } })).toBe("INVALID_HEADER");
});

test("500 tells nothing but the request's identifier, the log tells the rest", async () => {
  gateway.log.length = 0;
  const { status, text, headers } = await call("/pets/500");
  expect(status).toBe(500);
  expect(JSON.parse(text)).toEqual({
    code: "INTERNAL",
    message: `Something went wrong in the petstore. Quote request ${headers.get("x-request-id")}.`,
    status: 500,
  });
  const told = gateway.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 50);
  expect(told).toEqual([expect.objectContaining({ requestId: headers.get("x-request-id"), err: expect.anything() })]);
});

test("bad bodies through the real endpoint change nothing", async () => {
  const bodies: [string, string][] = [
    ['{"name":"a","name":"b","categoryId":1}', "MALFORMED_JSON"],
    ['{"name":"\\ud800","categoryId":1}', "MALFORMED_JSON"],
    [`{"name":"a","categoryId":1,"x":${"[".repeat(20)}${"]".repeat(20)}}`, "MALFORMED_JSON"],
    ['\uFEFF{"name":"a","categoryId":1}', "MALFORMED_JSON"],
    ['{"name":"a\\u0000","categoryId":1}', "VALIDATION_FAILED"],
    ['{"name":"a","categoryId":"1"}', "VALIDATION_FAILED"],
    ['{"name":"a","categoryId":1.5}', "VALIDATION_FAILED"],
    ['{"name":"a","categoryId":1e400}', "VALIDATION_FAILED"],
    ['{"name":"a","categoryId":0}', "VALIDATION_FAILED"],
    ['{"name":"a","categoryId":1,"status":"unspecified"}', "VALIDATION_FAILED"],
    ['{"name":"a","categoryId":1,"status":null}', "VALIDATION_FAILED"],
    ['{"name":" \\u2003","categoryId":1}', "VALIDATION_FAILED"],
    ['{"__proto__":{"name":"a","categoryId":1}}', "VALIDATION_FAILED"],
    ["[]", "VALIDATION_FAILED"],
    ['"x"', "VALIDATION_FAILED"],
    ["7", "VALIDATION_FAILED"],
    ["null", "VALIDATION_FAILED"],
  ];
  for (const [body, code] of bodies) expect([body, await codeOf("/pets", post(body))]).toEqual([body, code]);
  const { text } = await call("/pets", post('{"name":"a","categoryId":-3}'));
  expect(JSON.parse(text).message).toBe("categoryId: must be greater than 0");
  expect((await call("/pets", post('{"name":"a","categoryId":1.0}'))).status).toBe(201);
});

test("a PUT of a pet goes on as a replacement, a PATCH as a mask", async () => {
  await call("/pets/1", { ...post(newPet), method: "PUT" });
  expect(lastUpdate).toMatchObject({ petId: 1n, pet: create(NewPetSchema, { name: "Rex", categoryId: 1n }) });
  expect(lastUpdate?.updateMask).toBeUndefined();
  await call("/pets/1", { ...post('{"status":"sold"}'), method: "PATCH" });
  expect(lastUpdate?.updateMask?.paths).toEqual(["status"]);
  expect(calls).toBeGreaterThan(0);
});

test("a request for which there is no memory is refused, and nothing is done for it", async () => {
  const connections = { ...defaultConnectionLimits, requestBytes: 64 * 1024 };
  const full = await startGateway(PetService, implementation as never, { connections });
  const before = calls;
  const { status, headers, text } = await full.call("/pets/1");
  expect([status, headers.get("retry-after"), JSON.parse(text).code]).toEqual([503, "1", "OVERLOADED"]);
  expect(headers.get("x-request-id")).toBeTruthy();
  expect(calls).toBe(before);
  await full.app.close();
});
