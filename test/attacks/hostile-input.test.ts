/** Hostile and broken input, over raw sockets: each gets a record of its own, changes nothing, and learns nothing. */
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CategoryService, CreateCategoryRequestSchema } from "#proto/petstore/category/v1/category_service_pb.ts";
import { sendRaw } from "../../gateway/fixtures/gateway.ts";
import { envelope } from "../../packages/rpc/fixtures/envelope.ts";
import { codeName } from "../api/cases/case.ts";
import { checkTellsNoSecrets } from "../api/cases/endpoints.ts";
import { everything } from "../api/cases/everything.ts";
import { openShop, type Shop } from "../api/cases/shop.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

let petstore: Petstore;
let shop: Shop;
/** One record of each kind, by the path of its kind. */
let records: Record<string, string>;
let before: object;

beforeAll(async () => {
  petstore = await startPetstore({ services: { gateway: { MAX_REQUEST_TIME: "2s" } } });
  shop = openShop(petstore);
  const pet = await shop.stocked(5);
  const order = await shop.order({ petId: pet.id });
  records = {
    "/pets": `/pets/${pet.id}`,
    "/categories": `/categories/${pet.categoryId}`,
    "/store/orders": `/store/orders/${order.id}`,
    "/store/inventory": `/store/inventory/${pet.id}`,
  };
});
afterAll(() => petstore?.stop());

// Nothing in this file may change anything.
beforeEach(async () => {
  before = await everything(shop);
});
afterEach(async () => {
  expect(await everything(shop)).toEqual(before);
  const readiness = async () => (await fetch(`${petstore.http}/readyz`)).text();
  await expect.poll(readiness, { timeout: 20_000 }).toContain('"failing":[]');
});

const portOf = (url: string) => Number(new URL(url).port);
/** Sends bytes and gives back all that comes; `end` closes this side of the connection behind them. */
const send = (bytes: string | Buffer, end = false) => sendRaw(portOf(petstore.http), bytes, { end });

/** A request as bytes. What is in `head` goes before the headers that make it a proper one. */
function request(method: string, target: string, body: string | Buffer = "", head = ""): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const type = /content-type/i.test(head) ? "" : "Content-Type: application/json\r\n";
  const length = /transfer-encoding|content-length/i.test(head) ? "" : `Content-Length: ${bytes.length}\r\n`;
  const lines = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${head}${type}${length}\r\n`;
  return Buffer.concat([Buffer.from(lines, "latin1"), bytes]);
}

/** The record of an answer, as "400 MALFORMED_JSON"; what is no record fails. */
function recordOf(answer: string): string {
  const [head = "", text = ""] = answer.split("\r\n\r\n");
  checkTellsNoSecrets(text);
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(head) ?? [];
  expect(head.toLowerCase()).toMatch(/^x-request-id: [\w./:+=-]+\r?$/m);
  expect(head.toLowerCase()).toMatch(/^content-type: application\/json/m);
  const record = JSON.parse(text);
  expect(record).toEqual({ code: expect.any(String), message: expect.stringMatching(/\S/), status: Number(status) });
  return `${status} ${record.code}`;
}

const writes: readonly (readonly [method: string, kind: string, one: boolean])[] = [
  ["POST", "/pets", false],
  ["PUT", "/pets", true],
  ["PATCH", "/pets", true],
  ["POST", "/categories", false],
  ["PUT", "/categories", true],
  ["PATCH", "/categories", true],
  ["POST", "/store/orders", false],
  ["PUT", "/store/orders", true],
  ["PATCH", "/store/orders", true],
  ["PUT", "/store/inventory", true],
  ["PATCH", "/store/inventory", true],
];
const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

describe.each(writes)("%s %s", (method, kind, one) => {
  const target = () => (one ? (records[kind] ?? "") : kind);
  test.each<[string, string | Buffer, string]>([
    ["nothing", "", "400 MALFORMED_JSON"],
    ["null", "null", "400 VALIDATION_FAILED"],
    ["a list", '[{"name":"x"}]', "400 VALIDATION_FAILED"],
    ["a text", '"{}"', "400 VALIDATION_FAILED"],
    ["a number", "1", "400 VALIDATION_FAILED"],
    ["half an object", '{"name":"x"', "400 MALFORMED_JSON"],
    ["deep nesting", deep(17), "400 MALFORMED_JSON"],
    ["very deep nesting", deep(10_000), "400 MALFORMED_JSON"],
    ["duplicate members", '{"x":1,"x":1}', "400 MALFORMED_JSON"],
    ["duplicate __proto__", '{"__proto__":1,"__proto__":1}', "400 MALFORMED_JSON"],
    ["a lone surrogate", '{"name":"\\udfff"}', "400 MALFORMED_JSON"],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), "400 MALFORMED_JSON"],
    ["a byte order mark", "\ufeff{}", "400 MALFORMED_JSON"],
    ["too much", `{"x":"${"y".repeat(66_000)}"}`, "413 PAYLOAD_TOO_LARGE"],
  ])("%s", async (_, body, expected) => {
    expect(recordOf(await send(request(method, target(), body)))).toBe(expected);
  });

  test("gzip", async () => {
    const answer = await send(request(method, target(), gzipSync("{}"), "Content-Encoding: gzip\r\n"));
    expect(recordOf(answer)).toBe("415 UNSUPPORTED_MEDIA_TYPE");
  });

  test("__proto__ and its like pollute nothing", async () => {
    const body = '{"__proto__":{"name":"x","categoryId":1},"constructor":{"prototype":{"name":"x"}},"name":7}';
    const answer = recordOf(await send(request(method, target(), body, "Prefer: handling=strict\r\n")));
    expect(["400 UNKNOWN_FIELD", "400 VALIDATION_FAILED"]).toContain(answer);
  });
});

describe("values", () => {
  test.each<[string, string, string, string]>([
    ["U+0000 in a name", "/categories", '{"name":"a\\u0000b"}', "400 VALIDATION_FAILED"],
    ["1e400", "/store/orders", '{"quantity":1e400}', "400 VALIDATION_FAILED"],
    ["-1e400", "/store/orders", '{"petId":-1e400}', "400 VALIDATION_FAILED"],
    ["-0", "/store/orders", '{"quantity":-0}', "400 VALIDATION_FAILED"],
    ["an exponent that is a number of its own", "/store/orders", '{"quantity":1e99999999999}', "400 VALIDATION_FAILED"],
    ["9007199254740993 stays itself", "/store/orders", '{"petId":9007199254740993}', "404 PET_NOT_FOUND"],
    ["9007199254740993.0 too", "/store/orders", '{"petId":9007199254740993.0}', "404 PET_NOT_FOUND"],
    ["a text of digits", "/pets", '{"name":"Rex","categoryId":"1"}', "400 VALIDATION_FAILED"],
    ["an object with toString", "/pets", '{"name":{"toString":"x"},"categoryId":1}', "400 VALIDATION_FAILED"],
    ["an operator of a database", "/pets", '{"name":{"$gt":""},"categoryId":{"$ne":0}}', "400 VALIDATION_FAILED"],
  ])("%s", async (_, path, body, expected) => {
    const answer = await send(request("POST", path, body));
    expect(recordOf(answer)).toBe(expected);
    if (body.includes("9007199254740993")) expect(answer).toContain("9007199254740993");
  });

  test("an object that only looks like the one that is needed", async () => {
    expect(recordOf(await send(request("POST", "/categories", '{"__proto__":{"name":"x"}}')))).toBe(
      "400 VALIDATION_FAILED",
    );
  });
});

describe("injection", () => {
  test.each<[string, string, string]>([
    ["a second header behind a bare CR", "X-Request-Id: a\rSet-Cookie: b\r\n", "400 INVALID_HEADER"],
    ["a second header behind a bare LF", "X-Request-Id: a\nno header\r\n", "400 INVALID_HEADER"],
    ["U+0000 in a header", "X-Request-Id: a\0b\r\n", "400 INVALID_HEADER"],
    ["an entity tag that goes on", 'If-None-Match: "1"x\r\n', "400 INVALID_HEADER"],
    ["two Hosts", "Host: y\r\n", "400 INVALID_HEADER"],
  ])("%s", async (_, head, expected) => {
    const answer = await send(request("GET", "/categories/1", "", head));
    expect(answer.toLowerCase()).not.toContain("set-cookie");
    expect(recordOf(answer)).toBe(expected);
  });

  test("a second request within the first is not answered", async () => {
    const hidden = "0\r\n\r\nDELETE /categories/1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const head = `Content-Length: ${hidden.length}\r\nTransfer-Encoding: chunked\r\n`;
    expect(recordOf(await send(request("POST", "/categories", hidden, head)))).toBe("400 INVALID_HEADER");
  });

  test.each<[string, string, string]>([
    ["a line break in the query", "/pets?limit=1%0d%0aSet-Cookie:%20a=b", "400 INVALID_QUERY"],
    ["a quote in the query", "/pets?id=1'%20OR%20'1'='1", "400 INVALID_QUERY"],
    ["members of a list", "/pets?id[]=1&limit[$gt]=0&limit=x", "400 INVALID_QUERY"],
    ["__proto__ in the query", "/pets?__proto__[limit]=1&limit=0", "400 INVALID_QUERY"],
    ["U+0000 in the query", "/pets?orderBy=id%00", "400 INVALID_QUERY"],
    [
      "a forged token",
      `/pets?pageToken=${Buffer.from("1.AAAAAAAAAAAA").toString("base64url")}`,
      "400 INVALID_PAGE_TOKEN",
    ],
    ["a path up", "/pets/../../etc/passwd", "404 ROUTE_NOT_FOUND"],
    ["a path up, encoded", "/pets/..%2f..%2fetc%2fpasswd", "400 INVALID_ID"],
    // Beside the folder that is served.
    ["a path up in the documentation", "/docs/../package.json", "404 ROUTE_NOT_FOUND"],
    ["a path up in the documentation, encoded", "/docs/..%2fpackage.json", "404 ROUTE_NOT_FOUND"],
    ["a quote in an identifier", "/pets/1'--", "400 INVALID_ID"],
  ])("%s", async (_, target, expected) => {
    const answer = await send(request("GET", target));
    expect(answer.toLowerCase()).not.toContain("set-cookie");
    expect(recordOf(answer)).toBe(expected);
  });

  test("headers that only the petstore's processes may set are not believed", async () => {
    const answer = await fetch(`${petstore.url("inventory")}/petstore.internal.v1.InventoryInternalService/Open`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...{ "x-internal-secret": "guess", "x-internal-caller": "admin", "x-internal-key-seen": "99" },
      },
      body: '{"petId":"1","listing":"PET_STATUS_AVAILABLE"}',
    });
    const refused = { code: "permission_denied", details: [{ debug: { reason: "PERMISSION_DENIED" } }] };
    expect([answer.status, await answer.json()]).toMatchObject([403, refused]);
  });
});

describe("requests that don't arrive", () => {
  test("a body that ends early", async () => {
    expect(recordOf(await send(request("POST", "/categories", '{"name":"x"}', "Content-Length: 99\r\n"), true))).toBe(
      "400 INVALID_HEADER",
    );
  });
  test("headers that end early", async () => {
    expect(recordOf(await send("POST /categories HTTP/1.1\r\nHost: localhost\r\nContent-Ty", true))).toBe(
      "400 INVALID_HEADER",
    );
  });
  test("headers that never end", async () => {
    const answer = await send("GET /pets HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    expect(recordOf(answer)).toBe("408 REQUEST_TIMEOUT");
  });
  test("a body that never ends", async () => {
    const answer = await send(request("POST", "/categories", '{"name":', "Content-Length: 99\r\n"));
    expect(recordOf(answer)).toBe("408 REQUEST_TIMEOUT");
  });
  test("a connection that is reset in the middle of a body", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = connect(portOf(petstore.http), "127.0.0.1", () => {
      socket.write(request("POST", "/categories", '{"name":"x"', "Content-Length: 12\r\n"), () => {
        socket.resetAndDestroy();
        resolve();
      });
    });
    await promise;
  });
  test("something else than HTTP", async () => {
    for (const text of ["\x16\x03\x01\x02\x00\x01\x00", "SSH-2.0-x\r\n\r\n", "BREW /pets HTTP/1.1\r\n\r\n"])
      expect(recordOf(await send(Buffer.from(text, "latin1"), true))).toBe("400 INVALID_HEADER");
  });
});

const method = `/${CategoryService.typeName}/${CategoryService.method.createCategory.name}`;
const message = toBinary(CreateCategoryRequestSchema, create(CreateCategoryRequestSchema, { category: { name: "x" } }));
/** The codes are those that gRPC gives to such faults: a message that can't be parsed is INTERNAL. */
const frames: readonly [string, Buffer, Record<string, string>, string][] = [
  ["that promise more than they hold", envelope(message, { length: 100 }), {}, "INVALID_ARGUMENT"],
  ["that promise 4 GiB", envelope(message, { length: 0xffff_ffff }), {}, "RESOURCE_EXHAUSTED"],
  ["that promise a little more than allowed", envelope(message, { length: 1024 * 1024 + 1 }), {}, "RESOURCE_EXHAUSTED"],
  ["that promise less than they hold", envelope(message, { length: 2 }), {}, "INTERNAL"],
  ["that hold two messages", Buffer.concat([envelope(message), envelope(message)]), {}, "UNIMPLEMENTED"],
  ["that hold nothing", Buffer.alloc(0), {}, "UNIMPLEMENTED"],
  ["that are cut within the prefix", envelope(message).subarray(0, 3), {}, "INVALID_ARGUMENT"],
  ["that hold no protobuf", envelope(Buffer.from("ffffffffffffffffffffff", "hex")), {}, "INTERNAL"],
  ["that say they are compressed, in no way", envelope(message, { flags: 1 }), {}, "INTERNAL"],
  [
    "that say they are gzip and are not",
    envelope(message, { flags: 1 }),
    { "grpc-encoding": "gzip" },
    "INVALID_ARGUMENT",
  ],
  [
    "that are compressed in an unknown way",
    envelope(message, { flags: 1 }),
    { "grpc-encoding": "rot13" },
    "UNIMPLEMENTED",
  ],
  [
    "that unpack to 64 MiB",
    envelope(gzipSync(Buffer.alloc(2 ** 26)), { flags: 1 }),
    { "grpc-encoding": "gzip" },
    "RESOURCE_EXHAUSTED",
  ],
];

describe("gRPC frames, at the service", () => {
  test.each(frames)("%s", async (_, bytes, headers, code) => {
    const { status, text, details } = await overHttp2(bytes, { "content-type": "application/grpc+proto", ...headers });
    expect(codeName(Number(status), Code)).toBe(code);
    expect(details.includes("PAYLOAD_TOO_LARGE")).toBe(code === "RESOURCE_EXHAUSTED");
    checkTellsNoSecrets(decodeURIComponent(text));
  });

  async function overHttp2(bytes: Buffer, headers: Record<string, string>) {
    const session = connectHttp2(petstore.url("category"));
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
    session.once("error", reject);
    const stream = session.request({ ":method": "POST", ":path": method, te: "trailers", ...headers });
    let seen: Record<string, unknown> = {};
    stream.on("response", (fields) => {
      seen = { ...seen, ...fields };
    });
    stream.on("trailers", (fields) => {
      seen = { ...seen, ...fields };
    });
    stream.once("error", reject).once("close", () => resolve(seen));
    stream.resume().end(bytes);
    const fields = await promise.finally(() => session.close());
    return {
      status: String(fields["grpc-status"]),
      text: String(fields["grpc-message"] ?? ""),
      details: Buffer.from(String(fields["grpc-status-details-bin"] ?? ""), "base64").toString("latin1"),
    };
  }
});

describe("gRPC-Web frames, through the gateway", () => {
  test.each(frames)("%s", async (_, bytes, headers, code) => {
    const response = await fetch(petstore.http + method, {
      method: "POST",
      headers: { "content-type": "application/grpc-web+proto", ...headers },
      body: new Uint8Array(bytes),
    });
    const text = await response.text();
    const said = `${[...response.headers].join("\n")}\n${text}`;
    // The gateway calls what can't be read an error of the caller's.
    const expected = code === "INTERNAL" ? "INVALID_ARGUMENT" : code;
    expect(codeName(Number(/grpc-status[:,]\s*(\d+)/.exec(said)?.[1]), Code)).toBe(expected);
    const details = Buffer.from(/grpc-status-details-bin[:,]\s*(\S*)/.exec(said)?.[1] ?? "", "base64");
    expect(details.toString("latin1")).toContain(
      code === "RESOURCE_EXHAUSTED" ? "PAYLOAD_TOO_LARGE" : "VALIDATION_FAILED",
    );
    checkTellsNoSecrets(decodeURIComponent(/grpc-message[:,]\s*([^\r\n]*)/.exec(said)?.[1] ?? ""));
  });
});

describe("Connect, through the gateway", () => {
  test.each<[string, string | Buffer, Record<string, string>, string]>([
    ["half of JSON", '{"category":', { "content-type": "application/json" }, "400 invalid_argument"],
    [
      "JSON of another shape",
      '{"category":{"name":7}}',
      { "content-type": "application/json" },
      "400 invalid_argument",
    ],
    ["JSON that is no object", "[]", { "content-type": "application/json" }, "400 invalid_argument"],
    ["deep JSON", deep(10_000), { "content-type": "application/json" }, "400 invalid_argument"],
    ["no UTF-8", Buffer.from([0xff, 0xfe]), { "content-type": "application/json" }, "400 invalid_argument"],
    [
      "no protobuf",
      Buffer.from("ffffffffffffffffffffff", "hex"),
      { "content-type": "application/proto" },
      "400 invalid_argument",
    ],
    ["no gzip", "{}", { "content-type": "application/json", "content-encoding": "gzip" }, "400 invalid_argument"],
    [
      "unknown compression",
      "{}",
      { "content-type": "application/json", "content-encoding": "rot13" },
      "501 unimplemented",
    ],
    [
      "64 MiB, compressed",
      gzipSync(Buffer.alloc(2 ** 26, " ")),
      { "content-type": "application/json", "content-encoding": "gzip" },
      "429 resource_exhausted",
    ],
    ["2 MiB", " ".repeat(2 ** 21), { "content-type": "application/json" }, "429 resource_exhausted"],
    [
      "a timeout that is no number",
      "{}",
      { "content-type": "application/json", "connect-timeout-ms": "soon" },
      "400 invalid_argument",
    ],
    [
      "another version of the protocol",
      "{}",
      { "content-type": "application/json", "connect-protocol-version": "7" },
      "400 invalid_argument",
    ],
  ])("%s", async (_, body, headers, expected) => {
    const response = await fetch(petstore.http + method, {
      method: "POST",
      headers,
      body: typeof body === "string" ? body : new Uint8Array(body),
    });
    const text = await response.text();
    expect(`${response.status} ${JSON.parse(text).code}`).toBe(expected);
    expect(text).toContain(response.status === 429 ? "PAYLOAD_TOO_LARGE" : "VALIDATION_FAILED");
    checkTellsNoSecrets(JSON.parse(text).message ?? "");
  });
});
