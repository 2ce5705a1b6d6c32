/** What is hardly HTTP, over raw sockets: every answer is a record all the same. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text as streamText } from "node:stream/consumers";
import fc from "fast-check";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { recordIn, sendRaw, startGateway, testLimits } from "./fixtures/gateway.ts";

let creations = 0;
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const implementation = {
    listPets: () => ({ pets: [], nextPageToken: "t" }),
    createPet: () => ({ pet: { id: BigInt(++creations) } }),
  };
  gateway = await startGateway(PetService, implementation, { limits: { ...testLimits, requestMs: 1000 } });
}, 60_000);
afterAll(() => gateway.app.close());

const raw = (text: string | Buffer, options?: { end: boolean }) => sendRaw(gateway.port, text, options);
const head = "Host: x\r\nConnection: close\r\n";
const post = (headers: string, body: string) =>
  `POST /pets HTTP/1.1\r\n${head}Content-Type: application/json\r\n${headers}\r\n${body}`;

async function expectRecord(answer: string, status: number, code: string) {
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  const lower = answer.toLowerCase();
  for (const name of [
    "x-request-id",
    "api-version",
    "content-type: application/json",
    "content-length",
    "cache-control: no-store",
    "vary: accept",
  ])
    expect(lower).toContain(name);
  const record = recordIn(answer) as Record<string, unknown>;
  expect(Object.keys(record)).toEqual(["code", "message", "status"]);
  expect(record).toMatchObject({ code, status });
}

test.each([
  ["no HTTP at all", "hello\r\n\r\n"],
  ["a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ["an unknown method", `BREW /pets HTTP/1.1\r\n${head}\r\n`],
  ["another version", `GET /pets HTTP/9.9\r\n${head}\r\n`],
  ["a version that has another form", `GET /pets HTTP/2.0\r\n${head}\r\n`],
  ["a space in the target", `GET /pets ?x HTTP/1.1\r\n${head}\r\n`],
  ["no Host", "GET /pets HTTP/1.1\r\nConnection: close\r\n\r\n"],
  ["two Hosts", "GET /pets HTTP/1.1\r\nHost: x\r\nHost: x\r\nConnection: close\r\n\r\n"],
  ["an empty Host", "GET /pets HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n"],
  ["a Host with a space", "GET /pets HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n"],
  ["a Host with a path", "GET /pets HTTP/1.1\r\nHost: a/b\r\nConnection: close\r\n\r\n"],
  ["a header name with a space", `GET /pets HTTP/1.1\r\n${head}a b: c\r\n\r\n`],
  ["a NUL in a header", `GET /pets HTTP/1.1\r\n${head}X: a\0b\r\n\r\n`],
  ["a bare CR in a header", `GET /pets HTTP/1.1\r\n${head}X-Request-Id: a\rSet-Cookie: b\r\n\r\n`],
  ["two lengths", post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}")],
  ["a length and chunks", post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")],
  ["a length that is no number", post("Content-Length: x\r\n", "{}")],
  ["a broken chunk", post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n")],
  ["a body that ends early", post("Content-Length: 50\r\n", '{"name":"a",')],
  ["headers that end early", "GET /pets HTTP/1.1\r\nHost: x"],
])("INVALID_HEADER: %s", async (_what, text) => {
  await expectRecord(await raw(Buffer.from(text, "latin1")), 400, "INVALID_HEADER");
  expect(creations).toBe(0);
});

test("targets and headers that are too large for the parser itself", async () => {
  await expectRecord(await raw(`GET /${"x".repeat(60_000)} HTTP/1.1\r\n${head}\r\n`), 414, "URI_TOO_LONG");
  await expectRecord(
    await raw(`GET /pets HTTP/1.1\r\n${head}X: ${"x".repeat(60_000)}\r\n\r\n`),
    431,
    "HEADERS_TOO_LARGE",
  );
  await expectRecord(
    await raw(`GET /pets HTTP/1.1\r\n${head}${"X: y\r\n".repeat(3000)}\r\n`),
    431,
    "HEADERS_TOO_LARGE",
  );
});

test.each([
  ["head", "GET /pets HTTP/1.1\r\nHost"],
  ["body", post("Content-Length: 50\r\n", "{")],
])(
  "a %s that arrives too slowly is told so, and that nothing was done",
  async (_, text) => {
    const answer = await raw(text, { end: false });
    await expectRecord(answer, 408, "REQUEST_TIMEOUT");
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(creations).toBe(0);
  },
  60_000,
);

test("a body that arrives too slowly over HTTP/2 is told so, too", async () => {
  const session = connectHttp2(`http://127.0.0.1:${gateway.port}`);
  onTestFinished(() => session.destroy());
  const request = session.request({ ":method": "POST", ":path": "/pets", "content-type": "application/json" });
  request.write('{"name":"Rex","categoryId":1}');
  const [[headers], body] = await Promise.all([once(request, "response"), streamText(request)]);
  expect(headers).toMatchObject({ ":status": 408, "api-version": expect.any(String), "cache-control": "no-store" });
  expect(JSON.parse(body)).toMatchObject({ code: "REQUEST_TIMEOUT", status: 408 });
  for (let i = 0; i < 10; i++) await gateway.call("/pets");
  expect(creations).toBe(0);
}, 60_000);

test("nothing is done of a request that is complete after it was told so", async () => {
  const body = '{"name":"Rex","categoryId":1}';
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write(post(`Content-Length: ${body.length}\r\n`, body.slice(0, -1)));
  expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 408 /);
  socket.write(body.slice(-1));
  for (let i = 0; i < 10; i++) await gateway.call("/pets");
  expect(creations).toBe(0);
  socket.destroy();
}, 60_000);

test("a body that is larger than allowed is not waited for", async () => {
  const answer = await raw(post("Content-Length: 99999999\r\n", "{"), { end: false });
  await expectRecord(answer, 413, "PAYLOAD_TOO_LARGE");
});

test("CONNECT, Upgrade and Expect", async () => {
  await expectRecord(await raw(`CONNECT other.example:443 HTTP/1.1\r\n${head}\r\n`), 404, "ROUTE_NOT_FOUND");
  const upgrade = "GET /pets HTTP/1.1\r\nHost: x\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n";
  expect(await raw(upgrade)).toMatch(/^HTTP\/1.1 200 /);
  expect(await raw(`GET /pets HTTP/1.1\r\n${head}Expect: tea\r\n\r\n`)).toMatch(/^HTTP\/1.1 200 /);
});

test.each(["Connection: Upgrade\r\nUpgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"])(
  "nothing behind a request with %j is served, be it in the same packet or later",
  async (fields) => {
    const before = creations;
    const body = '{"name":"Rex","categoryId":1}';
    const create = (length: number, more = "") =>
      `POST /pets HTTP/1.1\r\nHost: x\r\n${more}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    const hidden = create(body.length) + body;
    for (const first of [
      `GET /pets HTTP/1.1\r\nHost: x\r\n${fields}\r\n\r\n`,
      create(body.length, `${fields}\r\n`) + body,
    ]) {
      const socket = connect(gateway.port, "127.0.0.1").on("error", () => {});
      await new Promise<void>((sent) => socket.write(first + create(hidden.length), () => sent()));
      socket.write(hidden);
      const answers = await streamText(socket);
      expect(answers.match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual([first.startsWith("GET") ? "200" : "201"]);
      expect(answers).toMatch(/\r\nconnection: close\r\n/i);
    }
    expect(creations).toBe(before + 1);
  },
);

test.each([
  ["CONNECT", `CONNECT other.example:443 HTTP/1.1\r\n${head}\r\n`, "404"],
  ["another version", `GET /pets HTTP/2.0\r\n${head}\r\n`, "400"],
])("%s behind a request is refused behind its answer", async (_what, text, status) => {
  const answers = await raw(`GET /pets HTTP/1.1\r\nHost: x\r\n\r\n${text}`);
  expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, one]) => one)).toEqual(["200", status]);
});

test("a caller that resets the connection harms nobody else", async () => {
  await new Promise<void>((resolve) => {
    const socket = connect(gateway.port, "127.0.0.1", () => {
      socket.write(post("Content-Length: 50\r\n", "{"), () => {
        socket.resetAndDestroy();
        resolve();
      });
    });
  });
  expect((await gateway.call("/pets")).status).toBe(200);
});

test("a caller that resets its CONNECT harms nobody else", async () => {
  for (let i = 0; i < 20; i++) {
    const socket = connect(gateway.port, "127.0.0.1");
    await new Promise<void>((resolve) => socket.write(`CONNECT a:1 HTTP/1.1\r\n${head}\r\n`, () => resolve()));
    socket.resetAndDestroy();
  }
  expect((await gateway.call("/pets")).status).toBe(200);
});

test("a client that doesn't read its answer is given up", async () => {
  const large = async (app: FastifyInstance) => {
    app.get("/large", (_request, reply) => {
      reply.raw.once("close", () => closed.resolve());
      return Buffer.alloc(64 * 1024 * 1024); // more than the system keeps for a connection
    });
  };
  const closed = Promise.withResolvers<void>();
  const limits = { writeMs: 100, waitingBytes: Number.POSITIVE_INFINITY };
  const { app, port } = await startGateway(PetService, {}, { connections: limits, plugins: [large] });
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write(`GET /large HTTP/1.1\r\nHost: a\r\n\r\n`);
  await closed.promise;
  socket.destroy();
  await app.close();
});

test("more pipelined requests than may wait end their connection, and others are served", async () => {
  const end = Promise.withResolvers<void>();
  let begun = 0;
  const listPets = async () => {
    begun++;
    await end.promise;
    return {};
  };
  const { app, port, call } = await startGateway(PetService, { listPets });
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  const closed = once(socket.resume(), "close");
  socket.write("GET /pets HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2000));
  await closed;
  expect((await call("/nowhere")).status).toBe(404);
  expect(begun).toBeLessThanOrEqual(10);
  end.resolve();
  await app.close();
});

test("connections beyond the bound take the place of idle ones", async () => {
  const limits = { connectionsPerAddress: 1 };
  const { app, port, call } = await startGateway(PetService, {}, { connections: limits });
  const idle = connect(port, "127.0.0.1");
  const closed = once(idle.resume(), "close");
  expect((await call("/nowhere")).status).toBe(404);
  await closed;
  await app.close();
});

test("the Link to the next page repeats what means something, and nothing that could break out of it or make it too long", async () => {
  const ignored = `x=%0d%0aSet-Cookie:%20a=b&y=%3E;%20rel=%22z%22,%C3%A9&z=${":".repeat(7_000)}`;
  const { status, headers } = await gateway.call(`/pets?${ignored}&limit=7&pageToken=s`);
  expect(status).toBe(200);
  expect(headers.get("link")).toBe('</pets?limit=7&pageToken=t>; rel="next"');
  expect(headers.get("set-cookie")).toBeNull();
});

const bytes = fc.uint8Array({ maxLength: 200 }).map((value) => Buffer.from(value));
const requests = fc.oneof(
  bytes,
  bytes.map((noise) => Buffer.concat([Buffer.from("GET /pets?"), noise, Buffer.from(` HTTP/1.1\r\n${head}\r\n`)])),
  bytes.map((noise) => Buffer.concat([Buffer.from(`GET /pets HTTP/1.1\r\n${head}`), noise, Buffer.from("\r\n\r\n")])),
  bytes.map((noise) => Buffer.concat([Buffer.from(post(`Content-Length: ${noise.length}\r\n`, "")), noise])),
);

test("whatever arrives, the answer is a record of a fault of the caller, or a success", async () => {
  await fc.assert(
    fc.asyncProperty(requests, async (request) => {
      const answer = await raw(request);
      if (answer === "") return; // too little to be a request
      const status = Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1]);
      expect(status).toBeLessThan(500);
      if (status >= 400) expect(recordIn(answer)).toMatchObject({ status, code: expect.any(String) });
    }),
    { numRuns: 300 },
  );
}, 60_000);
