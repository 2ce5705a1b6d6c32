import { createServer, type IncomingHttpHeaders } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, createClient, type Transport } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as web from "@connectrpc/connect-web";
import { HttpError } from "connect-transcoder";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reasonOf, rpcError } from "#errors";
import { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { type CreatePetRequest, CreatePetRequestSchema, PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { Health } from "../packages/rpc/gen/health/v1/health_pb.ts";
import type { Auth } from "./auth.ts";
import { type Cors, cors } from "./cors.ts";
import { sendRaw, servedAt, startGateway, testLimits } from "./fixtures/gateway.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const SECRET = "a-secret-of-the-petstore";
const KIB = 1024;
let service: Http2Server;
let seen: IncomingHttpHeaders = {};
let gateway: Awaited<ReturnType<typeof startGateway>>;

const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port;

const implementation = {
  getPet: ({ petId }: { petId: bigint }) => {
    if (petId === 404n) throw rpcError("PET_NOT_FOUND", "There is no pet 404.");
    return { pet: { id: petId, name: "Rex", categoryId: 1n } };
  },
  createPet: ({ pet, $unknown }: Pick<CreatePetRequest, "pet" | "$unknown">) => ({
    pet: { id: 9007199254740993n, name: $unknown ? "unknown" : (pet?.name ?? "") },
  }),
};

const closing = new AsyncDisposableStack();

function start(
  url: string,
  more: Partial<Parameters<typeof rpcEndpoint>[0]> = {},
  options: { auth?: Auth; cors?: Cors } = {},
) {
  const transport = servedAt(SECRET, url);
  closing.defer(() => transport.close());
  const endpoint = rpcEndpoint({
    basePath: "/api",
    services: [{ desc: PetService, transport }],
    limits: { rpcBytes: 64 * KIB, requestMs: testLimits.requestMs },
    clock: Date.now,
    ...more,
  });
  return startGateway(PetService, {}, { basePath: "/api", plugins: [endpoint], ...options });
}

beforeAll(async () => {
  const routes = (router: ConnectRouter) => {
    router.service(PetService, implementation);
    router.service(Health, {});
    router.service(PetInternalService, {});
  };
  const handle = connectNodeAdapter({ routes });
  service = createHttp2Server((request, response) => {
    seen = request.headers;
    handle(request, response);
  });
  await new Promise<void>((done) => service.listen(0, "127.0.0.1", done));
  gateway = await start(`http://127.0.0.1:${portOf(service)}`);
});
afterAll(async () => {
  await gateway.app.close();
  await closing.disposeAsync();
  await new Promise((done) => service.close(done));
});

const transports: Record<string, (baseUrl: string) => Transport> = {
  "Connect, binary": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true }),
  "Connect, JSON": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  "Connect by GET": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useHttpGet: true }),
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect in a browser": (baseUrl) => web.createConnectTransport({ baseUrl }),
  "gRPC-Web in a browser": (baseUrl) => web.createGrpcWebTransport({ baseUrl }),
};

const rejection = async (call: Promise<unknown>) =>
  ConnectError.from(
    await call.then(
      () => expect.fail("no error"),
      (error) => error,
    ),
  );

describe.each(Object.entries(transports))("%s", (_, transportTo) => {
  const client = () => createClient(PetService, transportTo(`${gateway.base}/api`));

  test("reads and writes, with identifiers beyond 2^53", async () => {
    expect((await client().getPet({ petId: 9007199254740993n })).pet?.id).toBe(9007199254740993n);
    expect((await client().createPet({ pet: { name: "Rex" } })).pet).toMatchObject({
      id: 9007199254740993n,
      name: "Rex",
    });
  });

  test("passes on nothing that it does not know", async () => {
    const request = create(CreatePetRequestSchema, { pet: { name: "Rex" } });
    request.$unknown = [{ no: 9999, wireType: 2, data: new Uint8Array([1, 7]) }];
    expect((await client().createPet(request)).pet?.name).toBe("Rex");
  });

  test("passes errors on with their reason", async () => {
    const error = await rejection(client().getPet({ petId: 404n }));
    expect([error.code, error.rawMessage]).toEqual([Code.NotFound, "There is no pet 404."]);
    expect(reasonOf(error)?.reason).toBe("PET_NOT_FOUND");
  });

  test("says in the protocol's own form that a message is too large", async () => {
    const error = await rejection(client().createPet({ pet: { name: "x".repeat(65 * KIB) } }));
    expect([error.code, reasonOf(error)?.reason]).toEqual([Code.ResourceExhausted, "PAYLOAD_TOO_LARGE"]);
  });

  test("says in the protocol's own form that the service is down", async () => {
    const unused = createServer();
    await new Promise<void>((done) => unused.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${portOf(unused)}`;
    await new Promise((done) => unused.close(done));
    const down = await start(url);
    try {
      const error = await rejection(createClient(PetService, transportTo(`${down.base}/api`)).getPet({ petId: 1n }));
      expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Unavailable, "UNAVAILABLE"]);
      expect(error.message).not.toContain("127.0.0.1");
    } finally {
      await down.app.close();
    }
  });
});

const GET_PET = "/api/petstore.pet.v1.PetService/GetPet";
const WATCH = "/api/petstore.pet.v1.PetService/WatchPets";
const post = (body = '{"petId":"7"}', headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  body,
  headers: { "content-type": "application/json", ...headers },
});

test("takes over a sane request id, and answers with it and the version of the interface", async () => {
  const { status, headers } = await gateway.call(GET_PET, post(undefined, { "x-request-id": "abc-1" }));
  expect([status, headers.get("x-request-id"), headers.get("api-version")]).toEqual([200, "abc-1", "1.0.0"]);
  expect(seen["x-request-id"]).toBe("abc-1");
});

test("JSON that is not UTF-8 never reaches a service", async () => {
  const body = Buffer.concat([Buffer.from('{"pet":{"name":"'), Buffer.from([0xff]), Buffer.from('"}}')]);
  seen = {};
  const answer = await gateway.call("/api/petstore.pet.v1.PetService/CreatePet", { ...post(), body });
  expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, { code: "invalid_argument" }]);
  expect(seen).toEqual({});
});

test.each([
  ["at once", { "connect-timeout-ms": "0" }],
  ["in time", {}],
])("a message that can't be decoded, due %s, is the caller's mistake in each protocol", async (_, headers) => {
  const garbage = "\x08"; // a number that breaks off
  const wrong = { code: "invalid_argument", details: [{ debug: { reason: "VALIDATION_FAILED" } }] };
  const connect = await gateway.call(GET_PET, post(garbage, { "content-type": "application/proto", ...headers }));
  expect([connect.status, JSON.parse(connect.text)]).toMatchObject([400, wrong]);
  const framed = `\0\0\0\0${String.fromCharCode(garbage.length)}${garbage}`;
  const time = "connect-timeout-ms" in headers && { "grpc-timeout": "0n" };
  const web = await gateway.call(GET_PET, post(framed, { "content-type": "application/grpc-web+proto", ...time }));
  expect(web.headers.get("grpc-status") ?? web.text).toMatch(/^3$|grpc-status: 3/);
});

test.each([
  ["base64", "base64=1&message=%25%25"],
  ["UTF-8", "message=%08%80%01"],
])("a Connect GET whose message is no %s is the caller's mistake, and never reaches a service", async (_, query) => {
  seen = {};
  const answer = await gateway.call(`${GET_PET}?connect=v1&encoding=proto&${query}`);
  const wrong = { code: "invalid_argument", details: [{ debug: { reason: "VALIDATION_FAILED" } }] };
  expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, wrong]);
  expect(seen).toEqual({});
});

test("headers that only the petstore may set are its own", async () => {
  const forged = { "x-internal-secret": "guess", "x-internal-caller": "admin", "x-internal-key-seen": "9" };
  await gateway.call(GET_PET, post(undefined, forged));
  expect(seen).toMatchObject({ "x-internal-secret": SECRET, "x-internal-caller": "anonymous" });
  expect(seen).not.toHaveProperty("x-internal-key-seen");
});

test("a caller that is known is told to the service, and one that is refused never reaches it", async () => {
  const url = `http://127.0.0.1:${portOf(service)}`;
  const auth: Auth = {
    admit: ({ headers: { "x-test-user": id } }, { name }) => {
      if (id === undefined) throw new HttpError("UNAUTHENTICATED", "Who are you?");
      if (id !== "ada" || name !== "GetPet") throw new HttpError("PERMISSION_DENIED", "Only for Ada.");
      return { id };
    },
  };
  const known = await start(url, {}, { auth });
  try {
    await known.call(GET_PET, post(undefined, { "x-test-user": "ada" }));
    expect(seen["x-internal-caller"]).toBe("ada");
    seen = {};
    expect((await known.call(GET_PET, post())).status).toBe(401);
    expect((await known.call(GET_PET, post(undefined, { "x-test-user": "bob" }))).status).toBe(403);
    const other = GET_PET.replace("GetPet", "DeletePet");
    expect((await known.call(other, post(undefined, { "x-test-user": "ada" }))).status).toBe(403);
    expect(seen).toEqual({});
  } finally {
    await known.app.close();
  }
});

test.each([
  "/api/grpc.health.v1.Health/Check",
  `/api/${PetInternalService.typeName}/${PetInternalService.methods[0]?.name}`,
  "/api/petstore.pet.v1.PetService/Nothing",
  "/api/petstore.pet.v1.PetService/GetPet/",
  "/petstore.pet.v1.PetService/GetPet",
])("%s can't be reached", async (path) => {
  seen = {};
  const { status, text } = await gateway.call(path, post("{}"));
  expect([status, JSON.parse(text).code]).toEqual([404, "ROUTE_NOT_FOUND"]);
  expect(seen).toEqual({});
});

test.each([
  ["an answer", "%7B%22petId%22:%227%22%7D", 200],
  ["a refusal", "%7B", 400],
])("%s to a GET is not kept for the next one who asks", async (_, message, expected) => {
  const { status, headers } = await gateway.call(`${GET_PET}?connect=v1&encoding=json&message=${message}`);
  expect([status, headers.get("cache-control")]).toEqual([expected, "no-store"]);
});

test("only what has no side effects can be called by GET", async () => {
  for (const version of ["", "&connect=v1"]) {
    const path = `/api/petstore.pet.v1.PetService/CreatePet?encoding=json&message=%7B%7D${version}`;
    const write = await gateway.call(path);
    expect([write.status, JSON.parse(write.text).code]).toEqual([405, "METHOD_NOT_ALLOWED"]);
    expect(write.headers.get("allow")).toBe("OPTIONS, POST");
  }
  expect((await gateway.call(`${GET_PET}?connect=v1&encoding=json&message=%7B%7D`, { method: "HEAD" })).status).toBe(
    405,
  );
  const read = await gateway.call(GET_PET, { method: "PUT", body: "{}" });
  expect([read.status, read.headers.get("allow")]).toEqual([405, "GET, OPTIONS, POST"]);
});

/** What every answer of the gateway says. */
const COMMON = ["x-request-id", "api-version", "x-content-type-options"];

test("plain gRPC is told where to go, in its own form", async () => {
  const { status, headers, text } = await gateway.call(GET_PET, post("", { "content-type": "application/grpc+proto" }));
  expect([status, headers.get("grpc-status"), text]).toEqual([200, "12", ""]);
  expect(decodeURIComponent(headers.get("grpc-message") ?? "")).toContain("call the service itself");
  for (const name of COMMON) expect([name, headers.get(name)]).toEqual([name, expect.any(String)]);
});

describe("content types", () => {
  const refused = { code: "unimplemented", details: [{ debug: { reason: "UNSUPPORTED_MEDIA_TYPE" } }] };
  const TAKEN = "application/json, application/proto, application/grpc-web, application/grpc-web+proto";

  test.each([
    ['application/json; charset="utf-8"', '{"petId":"7"}'],
    ["application/json;", '{"petId":"7"}'],
    ["application/json; foo=bar", '{"petId":"7"}'],
    ["application/proto; charset=utf-8", "\x08\x07"],
    ["application/grpc-web+proto; charset=utf-8", "\0\0\0\0\x02\x08\x07"],
  ])("%s is taken, whatever its parameters", async (type, body) => {
    const { status, text } = await gateway.call(GET_PET, post(body, { "content-type": type }));
    expect([status, text]).toEqual([200, expect.stringContaining("Rex")]);
  });

  test.each([
    ["application/json; charset=latin1", GET_PET, 415, "charset=utf-8"],
    ["application/json", WATCH, 415, "application/connect+json"],
  ])("%s is refused by unary Connect with what is taken", async (type, path, expected, says) => {
    seen = {};
    const { status, headers, text } = await gateway.call(path, post("{}", { "content-type": type }));
    expect([status, JSON.parse(text)]).toMatchObject([expected, refused]);
    expect(JSON.parse(text).message).toContain(says);
    expect(headers.get("accept-post")).toContain("application/grpc-web+proto");
    for (const name of COMMON) expect([name, headers.get(name)]).toEqual([name, expect.any(String)]);
    expect(seen).toEqual({});
  });

  test.each([
    ["text/plain", TAKEN],
    [undefined, `There is no Content-Type. Send ${TAKEN}`],
  ])("%s, which is of no RPC, is refused by HTTP's record with what is taken", async (type, says) => {
    const body = new TextEncoder().encode("{}");
    const answer = await gateway.call(GET_PET, { method: "POST", body, headers: type ? { "content-type": type } : {} });
    const record = { code: "UNSUPPORTED_MEDIA_TYPE", message: expect.stringContaining(says), status: 415 };
    expect(JSON.parse(answer.text)).toEqual(record);
    expect(answer.headers.get("accept-post")).toContain("application/grpc-web+proto");
  });

  test("a stream of Connect is refused as one", async () => {
    const { status, headers, text } = await gateway.call(
      GET_PET,
      post("\0\0\0\0\x02{}", { "content-type": "application/connect+json" }),
    );
    expect([status, text.charCodeAt(0)]).toEqual([200, 2]);
    expect(JSON.parse(text.slice(5)).error).toMatchObject({ ...refused, message: expect.stringContaining(TAKEN) });
    for (const name of COMMON) expect([name, headers.get(name)]).toEqual([name, expect.any(String)]);
  });

  test.each(["application/grpc-web-text", "application/grpc-web+xml"])("%s is refused by trailers", async (type) => {
    const { status, headers, text } = await gateway.call(GET_PET, post("\0\0\0\0\0", { "content-type": type }));
    expect([status, headers.get("grpc-status"), text]).toEqual([200, "12", ""]);
    expect(decodeURIComponent(headers.get("grpc-message") ?? "")).toContain("application/grpc-web+proto");
    for (const name of COMMON) expect([name, headers.get(name)]).toEqual([name, expect.any(String)]);
  });

  test("an encoding in the query that there is not", async () => {
    const { status, headers, text } = await gateway.call(`${GET_PET}?connect=v1&encoding=xml&message=x`);
    const expected = { ...refused, message: "encoding: must be json or proto" };
    expect([status, JSON.parse(text), headers.get("cache-control")]).toMatchObject([415, expected, "no-store"]);
  });

  test("a compression that there is not, and a charset for one", async () => {
    for (const [coding, says] of [
      ["zstd", /^unknown compression "zstd": supported encodings are gzip,br$/],
      ["utf-8", /utf-8 is a charset: it belongs into Content-Type$/],
    ] as const) {
      const { headers, text } = await gateway.call(GET_PET, post("{}", { "content-encoding": coding }));
      expect([headers.get("accept-encoding"), JSON.parse(text).message]).toEqual([
        "gzip,br",
        expect.stringMatching(says),
      ]);
    }
  });

  test("refusals may be read by the pages that may call", async () => {
    const url = `http://127.0.0.1:${portOf(service)}`;
    const open = await start(url, {}, { cors: cors(["https://shop.example"]) });
    try {
      for (const type of ["text/plain", "application/connect+json", "application/grpc-web-text"]) {
        const { headers } = await open.call(
          GET_PET,
          post("", { "content-type": type, origin: "https://shop.example" }),
        );
        expect([type, headers.get("access-control-allow-origin")]).toEqual([type, "https://shop.example"]);
      }
    } finally {
      await open.app.close();
    }
  });
});

test.each([5, 400])(
  "a body without a length is cut off at the limit, and the answer heard behind %i chunks",
  async (length) => {
    const chunk = "x".repeat(16 * KIB);
    const chunks = Array.from({ length }, () => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
    const head = `POST ${GET_PET} HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(gateway.port, `${head}${chunks}0\r\n\r\n`, { end: false });
    expect(answer).toMatch(/^HTTP\/1\.1 429 /);
    expect(answer).toContain('"code":"resource_exhausted"');
  },
);

test("a caller that waits for 100 Continue is served", async () => {
  const body = '{"petId":"7"}';
  const head = `POST ${GET_PET} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nConnection: close\r\n`;
  const answer = await sendRaw(gateway.port, `${head}Content-Length: ${body.length}\r\n\r\n${body}`, { end: false });
  expect(answer).toContain("HTTP/1.1 200 OK");
});

test("an error quotes little of a header", async () => {
  const { text } = await gateway.call(GET_PET, post("{}", { "content-encoding": "x".repeat(12_000) }));
  expect(text).toContain("unknown compression");
  expect(text.length).toBeLessThan(2000);
});
