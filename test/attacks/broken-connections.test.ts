/** Nobody can end a process: connections break off after every byte of every kind of request, at both kinds of port. */
import { once } from "node:events";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ListPetsRequestSchema } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { envelope } from "../../packages/rpc/fixtures/envelope.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { begin, CREATE, http1, LIST, listPath, http2 as requestsByHttp2 } from "./requests.ts";

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore.stop());

const CONNECT_GET = listPath(1);
const listed = envelope(toBinary(ListPetsRequestSchema, create(ListPetsRequestSchema, { limit: 1 })));
const http2 = (...asked: Parameters<typeof requestsByHttp2>) => Buffer.concat([begin, requestsByHttp2(...asked)]);

/** How many requests follow each other without waiting for an answer. */
const COUNTS = [1, 3];

const gatewayRequests: [string, Buffer][] = [
  ["HTTP/JSON GET", http1("GET /pets?limit=1")],
  ["HTTP/JSON POST", http1("POST /categories", "application/json", '{"name":"broken"}')],
  [
    "HTTP/JSON POST in chunks",
    Buffer.from(
      "POST /categories HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n" +
        '9\r\n{"name":"\r\n8\r\nbroken"}\r\n0\r\n\r\n',
    ),
  ],
  [
    "a POST that expects 100",
    Buffer.from(
      http1("POST /pets", "application/json", "{}")
        .toString()
        .replace("host: localhost", "host: localhost\r\nexpect: 100-continue"),
    ),
  ],
  ["an unknown path", http1("POST /nowhere", "application/json", "{}")],
  ["CONNECT", http1("CONNECT a:1")],
  ["a GET without Host", Buffer.from("GET /pets HTTP/1.1\r\n\r\n")],
  ["Connect POST", http1(`POST ${LIST}`, "application/json", '{"limit":1}')],
  ["Connect POST that writes", http1(`POST ${CREATE}`, "application/json", '{"category":{"name":"broken"}}')],
  ["Connect GET", http1(`GET ${CONNECT_GET}`)],
  ["gRPC-Web", http1(`POST ${LIST}`, "application/grpc-web+proto", listed)],
];

const petRequests: [string, Buffer][] = [
  ["Connect POST", http1(`POST ${LIST}`, "application/json", '{"limit":1}')],
  ["Connect GET", http1(`GET ${CONNECT_GET}`)],
  ["Connect GET without Host", Buffer.from(`GET ${CONNECT_GET} HTTP/1.1\r\n\r\n`)],
  ["gRPC-Web", http1(`POST ${LIST}`, "application/grpc-web+proto", listed)],
  ["an unknown RPC", http1(`POST ${LIST}s`, "application/json", "{}")],
];

const petRequests2 = (count: number): [string, Buffer][] => [
  ["Connect POST", http2("POST", LIST, count, "application/json", '{"limit":1}')],
  ["Connect GET", http2("GET", CONNECT_GET, count)],
  ["gRPC-Web", http2("POST", LIST, count, "application/grpc-web+proto", listed)],
  ["gRPC", http2("POST", LIST, count, "application/grpc", listed)],
  ["an unknown RPC over gRPC", http2("POST", `${LIST}s`, count, "application/grpc", listed)],
];

const many = (requests: [string, Buffer][], count: number): [string, Buffer][] =>
  requests.map(([name, bytes]) => [name, Buffer.concat(Array.from({ length: count }, () => bytes))]);

type End = "FIN" | "RST" | "RST at the first byte of an answer";
const ENDS: readonly End[] = ["FIN", "RST"];

/** Sends bytes and breaks the connection off; resolves when it is closed. */
async function broken(port: number, bytes: Buffer, end: End): Promise<void> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  if (end === "FIN") socket.end(bytes);
  else socket.write(bytes, () => end === "RST" && socket.resetAndDestroy());
  socket.on("data", () => end !== "FIN" && socket.resetAndDestroy());
  await closed;
}

/** Does as many things at a time as a test may have connections. */
async function all<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await act(item);
  };
  await Promise.all(Array.from({ length: 32 }, worker));
}

const cuts = (bytes: Buffer): Buffer[] => Array.from({ length: bytes.length }, (_, i) => bytes.subarray(0, i + 1));

const portOf = (which: "gateway" | "pet"): number => Number(new URL(petstore.url(which)).port);

async function expectTheSameProcess(which: "gateway" | "pet"): Promise<void> {
  const answer = await fetch(
    which === "gateway" ? `${petstore.url(which)}/pets?limit=1` : `${petstore.url(which)}${CONNECT_GET}`,
  );
  expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
  expect(petstore.logs(which)).not.toMatch(/uncaught/i);
  expect(petstore.logs(which).match(/"ready at /g)).toHaveLength(1);
}

describe.each(COUNTS)("broken off after every byte, %i requests in a row", (count) => {
  describe.each(ENDS)("by %s", (end) => {
    test.each(many(gatewayRequests, count))("the gateway lives: %s", async (_, bytes) => {
      await all(cuts(bytes), (some) => broken(portOf("gateway"), some, end));
      await expectTheSameProcess("gateway");
    });
    test.each(many(petRequests, count))("a service lives, HTTP/1.1: %s", async (_, bytes) => {
      await all(cuts(bytes), (some) => broken(portOf("pet"), some, end));
      await expectTheSameProcess("pet");
    });
    test.each(petRequests2(count))("a service lives, HTTP/2: %s", async (_, bytes) => {
      await all(cuts(bytes), (some) => broken(portOf("pet"), some, end));
      await expectTheSameProcess("pet");
    });
  });
});

describe("broken off while answers come", () => {
  const TIMES = Array.from({ length: 100 }, (_, i) => i);

  test.each(
    many(
      gatewayRequests.filter(([name]) => /GET$|gRPC-Web/.test(name)),
      3,
    ),
  )("the gateway lives: %s", async (_, bytes) => {
    await all(TIMES, () => broken(portOf("gateway"), bytes, "RST at the first byte of an answer"));
    await expectTheSameProcess("gateway");
  });

  test.each([...many(petRequests, 3), ...petRequests2(3)])("a service lives: %s", async (_, bytes) => {
    await all(TIMES, () => broken(portOf("pet"), bytes, "RST at the first byte of an answer"));
    await expectTheSameProcess("pet");
  });
});

test.each(["", "Host:\r\n", "Host: a b\r\n", "Host: a/b\r\n"])(
  "a service lives when a request that is addressed to nobody (%j) and a good one come in one packet",
  async (host) => {
    const bytes = Buffer.from(
      `GET ${CONNECT_GET} HTTP/1.1\r\n${host}\r\nGET ${CONNECT_GET} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    for (const end of [...ENDS, "RST at the first byte of an answer" as const])
      for (let i = 0; i < 5; i++) await broken(portOf("pet"), bytes, end);
    await expectTheSameProcess("pet");
  },
);

describe.each([129, 140])("%i half-sent bodies at a time", (count) => {
  test.each([
    [
      "the gateway's RPC path",
      "gateway",
      http1(`POST ${CREATE}`, "application/json", '{"category":{"name":"broken"}}'),
    ],
    ["the gateway's HTTP path", "gateway", http1("POST /categories", "application/json", '{"name":"broken"}')],
    ["a service", "pet", http1(`POST ${LIST}`, "application/json", '{"limit":1}')],
    ["a service, gRPC", "pet", http2("POST", LIST, 1, "application/grpc", listed)],
  ] as const)("%s", async (_, which, bytes) => {
    for (const end of ENDS) {
      const sockets = Array.from({ length: count }, () => connect(portOf(which), "127.0.0.1").on("error", () => {}));
      await Promise.all(sockets.map((socket) => once(socket, "connect")));
      await Promise.all(
        sockets.map((socket) => new Promise((resolve) => socket.write(bytes.subarray(0, -5), resolve))),
      );
      // Answered behind all of them: they have been read.
      await fetch(`${petstore.url("gateway")}/healthz`);
      const closed = sockets.map((socket) => new Promise((resolve) => socket.resume().once("close", resolve)));
      for (const socket of sockets) end === "FIN" ? socket.end() : socket.resetAndDestroy();
      await Promise.all(closed);
      await expectTheSameProcess(which);
    }
  });
});
