import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { reasonOf } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { Health } from "../packages/rpc/gen/health/v1/health_pb.ts";
import { startGateway, testLimits } from "./fixtures/gateway.ts";
import { createRateLimits } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const limits = { ...testLimits, rpcBytes: 1024 };
  const endpoint = rpcEndpoint({ basePath: "", services: [], limits, clock: Date.now });
  const rates = createRateLimits({ requests: 1000, windowMs: 60_000, burst: 1000 }, { clock: Date.now });
  gateway = await startGateway(PetService, {}, { plugins: [endpoint], rates });
});
afterAll(() => gateway.app.close());

const UNKNOWN = "/petstore.pet.v1.PetService/Nothing";
const post = (type: string, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  body: "{}",
  headers: { "content-type": type, ...headers },
});

test.each([
  ["Connect", createConnectTransport],
  ["Connect by GET", (options: { baseUrl: string }) => ({ ...options, useHttpGet: true })],
  ["gRPC-Web", createGrpcWebTransport],
] as const)("%s clients are told UNIMPLEMENTED, with a reason", async (_, open) => {
  const options = { baseUrl: gateway.base, httpVersion: "1.1" } as const;
  const opened = open(options);
  const transport = "unary" in opened ? opened : createConnectTransport({ ...options, ...opened });
  const error = await createClient(Health, transport)
    .check({})
    .catch((thrown) => ConnectError.from(thrown));
  if (!(error instanceof ConnectError)) return expect.fail("no error");
  expect([error.code, error.rawMessage]).toEqual([Code.Unimplemented, "There is no such RPC here."]);
  expect(reasonOf(error)?.reason).toBe("ROUTE_NOT_FOUND");
});

test.each([
  ["Connect", createConnectTransport],
  ["gRPC-Web", createGrpcWebTransport],
] as const)("%s clients are told so of a stream, too", async (_, open) => {
  const client = createClient(Health, open({ baseUrl: gateway.base, httpVersion: "1.1" }));
  const error = await client
    .watch({})
    [Symbol.asyncIterator]()
    .next()
    .catch((thrown) => ConnectError.from(thrown));
  if (!(error instanceof ConnectError)) return expect.fail("no error");
  expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Unimplemented, "ROUTE_NOT_FOUND"]);
});

test("gRPC-Web is answered by trailers only", async () => {
  for (const type of ["application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"]) {
    const { status, headers, text } = await gateway.call(UNKNOWN, post(type));
    expect([status, headers.get("grpc-status"), headers.get("content-type"), text]).toEqual([200, "12", type, ""]);
    expect(headers.get("x-request-id")).not.toBeNull();
  }
});

test("gRPC is answered by one frame over HTTP/2, with all that other answers say", async () => {
  const session = connectHttp2(gateway.base);
  onTestFinished(() => session.destroy());
  const request = session.request({ ":method": "POST", ":path": UNKNOWN, "content-type": "application/grpc" });
  request.end("\0\0\0\0\0");
  const [headers, flags] = await once(request, "response");
  expect(headers).toMatchObject({ ":status": 200, "content-type": "application/grpc", "grpc-status": "12" });
  expect(flags & constants.NGHTTP2_FLAG_END_STREAM).toBe(constants.NGHTTP2_FLAG_END_STREAM);
  for (const name of ["x-request-id", "api-version", "ratelimit", "x-content-type-options"])
    expect(headers).toHaveProperty(name);
});

test("Connect is answered in its own form", async () => {
  const answers = [
    await gateway.call(UNKNOWN, post("application/json", { "connect-protocol-version": "1" })),
    await gateway.call(UNKNOWN, post("application/proto")),
    await gateway.call(`${UNKNOWN}?connect=v1&encoding=json&message=%7B%7D`),
  ];
  for (const { status, headers, text } of answers) {
    expect([status, JSON.parse(text).code, headers.get("api-version")]).toEqual([404, "unimplemented", "1.0.0"]);
  }
});

test.each([
  ["JSON that may be anybody's", UNKNOWN, post("application/json")],
  ["a GET", UNKNOWN, {}],
  ["gRPC-Web on no path of an RPC", "/nowhere", post("application/grpc-web+proto")],
  ["Connect on no path of an RPC", "/pets/1/2", post("application/proto")],
])("%s is answered by HTTP's own record", async (_, path, init) => {
  const { status, text } = await gateway.call(path, init);
  expect([status, JSON.parse(text).code]).toEqual([404, "ROUTE_NOT_FOUND"]);
});
