/** Media types, bodies and their limits, over a real port. */
import { connect } from "node:net";
import { expect, test } from "vitest";
import { recordIn } from "./fixtures/gateway.ts";
import { newPet, petGateway, post, seen } from "./fixtures/pets.ts";

const { call, codeOf, port, sendRaw } = petGateway();

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
  ["a charset as an encoding", post(newPet, { "content-encoding": "utf-8" })],
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

test("a DELETE whose content breaks off is refused, and not carried out", async () => {
  const socket = connect(port(), "127.0.0.1").setEncoding("utf8");
  socket.write("DELETE /pets/77 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12");
  // By then whatever begins without its content has begun.
  for (let i = 0; i < 3; i++) expect((await call("/pets/1")).status).toBe(200);
  socket.end();
  expect(recordIn((await socket.toArray()).join(""))).toMatchObject({ status: 400, code: "INVALID_HEADER" });
  expect(seen.lastDeleted).not.toBe(77n);
  expect((await call("/pets/77", { method: "DELETE", body: "12345" })).status).toBe(204);
  expect(seen.lastDeleted).toBe(77n);
});

test.each([
  ["POST", "/pets", { "content-type": "text/plain" }, { "accept-post": "application/json" }],
  ["PUT", "/pets/1", { "content-type": "text/plain" }, { accept: "application/json" }],
  ["PATCH", "/pets/1", {}, { "accept-patch": "application/merge-patch+json, application/json" }],
  ["POST", "/pets", { "content-encoding": "gzip" }, { "accept-encoding": "identity" }],
  ["PATCH", "/pets/1", { "content-encoding": "utf-8" }, { "accept-encoding": "identity" }],
])("a 415 of %s %s with %j says what is taken", async (method, path, given, expected) => {
  const { headers } = await call(path, {
    method,
    headers: { ...given } as Record<string, string>,
    body: new TextEncoder().encode("{}"),
  });
  const told = ["accept", "accept-post", "accept-patch", "accept-encoding"].filter((name) => headers.has(name));
  expect(Object.fromEntries(told.map((name) => [name, headers.get(name)]))).toEqual(expected);
});

test("a charset that is sent as an encoding is told where it belongs", async () => {
  const { text } = await call("/pets", post(newPet, { "content-encoding": "utf-8" }));
  expect(JSON.parse(text).message).toBe(
    "Content-Encoding: utf-8 is a charset, not a compression. It belongs into Content-Type; send no Content-Encoding.",
  );
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
  expect(recordIn(await sendRaw(chunked))).toMatchObject({ code: "MALFORMED_JSON" });
});

test.each(["gzip, chunked", "identity, chunked", "gzip\r\nTransfer-Encoding: chunked"])(
  "a body in the transfer coding %s is not read as if it had none",
  async (coding) => {
    const ask = (line: string) =>
      sendRaw(
        `${line} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      );
    const record = { code: "NOT_IMPLEMENTED", message: expect.stringContaining("only coding is chunked"), status: 501 };
    for (const line of ["POST /pets", "DELETE /pets/1", "GET /pets/1"]) {
      const answer = await ask(line);
      expect(answer).toMatch(/^connection: close\r$/im);
      expect(recordIn(answer)).toEqual(record);
    }
    expect(recordIn(await ask("POST /nowhere"))).toMatchObject({ code: "ROUTE_NOT_FOUND" });
  },
);

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
