/** The HTTP side of the gateway over a real port: methods, paths, headers, and the order of checks. */
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { NewPetSchema } from "#proto/petstore/pet/v1/pet_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { recordIn, startGateway } from "./fixtures/gateway.ts";
import { newPet, petGateway, petService, post, seen } from "./fixtures/pets.ts";

const { call, codeOf, logged, sendRaw } = petGateway();

test("every answer carries X-Request-Id and API-Version", async () => {
  for (const path of ["/pets", "/pets/404", "/pets/x", "/nowhere"]) {
    const { headers } = await call(path);
    expect(headers.get("x-request-id")).toMatch(/^[A-Za-z0-9._:/+=-]{1,128}$/);
    expect(headers.get("api-version")).toBe("1.0.0");
  }
});

test("a sane X-Request-Id is taken over and passed on, another one is replaced", async () => {
  seen.requestIds = [];
  const given = await call("/pets/1", { headers: { "x-request-id": "a.b:c/d+e=f-1" } });
  expect(given.headers.get("x-request-id")).toBe("a.b:c/d+e=f-1");
  const other = await call("/pets/1", { headers: { "x-request-id": "a b" } });
  expect(other.headers.get("x-request-id")).not.toBe("a b");
  expect(seen.requestIds).toEqual(["a.b:c/d+e=f-1", other.headers.get("x-request-id")]);
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

test("OPTIONS asks about the server as a whole, too", async () => {
  const about = (method: string) => sendRaw(`${method} * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  const options = await about("OPTIONS");
  expect(options).toMatch(/^HTTP\/1.1 204 /);
  expect(options).toContain("\r\nallow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n");
  expect(recordIn(await about("GET"))).toMatchObject({ code: "ROUTE_NOT_FOUND" });
});

test.each(["TRACE", "PROPFIND", "M-SEARCH", "QUERY", "PURGE"])("405 for %s, which nobody serves", async (method) => {
  const answer = await sendRaw(`${method} /pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1.1 405 .*\r\n/);
  expect(recordIn(answer)).toMatchObject({ code: "METHOD_NOT_ALLOWED", status: 405 });
});

test("a method that is not registered is told apart from HTTP that can't be read", async () => {
  const ask = async (head: string) => recordIn(await sendRaw(`${head}\r\nHost: x\r\n\r\n`));
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
  const raw = (target: string) => sendRaw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
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

test("a create: 201, Location, ETag, and whether it is a replay", async () => {
  const first = await call("/pets", post(newPet));
  expect(first.status).toBe(201);
  expect(first.headers.get("location")).toBe("/pets/9");
  expect(first.headers.get("etag")).toBe('"3"');
  expect(first.headers.get("idempotent-replayed")).toBeNull();
  const again = await call("/pets", post(newPet, { "idempotency-key": "again" }));
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  const refused = await call("/pets", post(newPet, { "idempotency-key": "refused" }));
  expect([refused.status, refused.headers.get("idempotent-replayed")]).toEqual([404, "true"]);
  for (const key of ["", "a b", "é", "x".repeat(256)])
    expect(await codeOf("/pets", post(newPet, { "idempotency-key": key }))).toBe("INVALID_HEADER");
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
});

test("a call ends in the time that X-Server-Timeout gives it", async () => {
  // On this clock the call begins before that is over.
  const { call, app } = await startGateway(PetService, petService as never, { clock: () => 0 });
  onTestFinished(() => app.close());
  const { status, text } = await call("/pets/13", { headers: { "x-server-timeout": "0.05" } });
  expect([status, JSON.parse(text).code]).toEqual([504, "DEADLINE_EXCEEDED"]);
});

test("a caller that goes away ends the call", async () => {
  seen.waiting = "";
  const controller = new AbortController();
  const gone = call("/pets/13", { signal: controller.signal }).catch(() => "gone");
  await expect.poll(() => seen.waiting, { timeout: 10_000 }).toBe("yes");
  controller.abort();
  expect(await gone).toBe("gone");
  await expect.poll(() => seen.waiting, { timeout: 5_000 }).toBe("aborted"); // well before the time for the request is up
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
  logged().length = 0;
  const { status, text, headers } = await call("/pets/500");
  expect(status).toBe(500);
  expect(JSON.parse(text)).toEqual({
    code: "INTERNAL",
    message: `Something went wrong in the petstore. Quote request ${headers.get("x-request-id")}.`,
    status: 500,
  });
  const told = logged()
    .map((line) => JSON.parse(line))
    .filter(({ level }) => level === 50);
  expect(told).toEqual([expect.objectContaining({ requestId: headers.get("x-request-id"), err: expect.anything() })]);
});

test("a PUT of a pet goes on as a replacement, a PATCH as a mask", async () => {
  await call("/pets/1", { ...post(newPet), method: "PUT" });
  expect(seen.lastUpdate).toMatchObject({ petId: 1n, pet: create(NewPetSchema, { name: "Rex", categoryId: 1n }) });
  expect(seen.lastUpdate?.updateMask).toBeUndefined();
  await call("/pets/1", { ...post('{"status":"sold"}'), method: "PATCH" });
  expect(seen.lastUpdate?.updateMask?.paths).toEqual(["status"]);
  expect(seen.calls).toBeGreaterThan(0);
});

test("a request for which there is no memory is refused, and nothing is done for it", async () => {
  const connections = { requestBytes: 1 };
  const full = await startGateway(PetService, petService as never, { connections });
  const before = seen.calls;
  const { status, headers, text } = await full.call("/pets/1");
  expect([status, headers.get("retry-after"), JSON.parse(text).code]).toEqual([503, "1", "OVERLOADED"]);
  expect(headers.get("x-request-id")).toBeTruthy();
  expect(seen.calls).toBe(before);
  await full.app.close();
});
