/** The RPC server over real ports, with every protocol. */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, ConnectError, type ConnectRouter, createClient, type Transport } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#proto/health/v1/health_pb.ts";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { reasonOf } from "./fault.ts";
import { MAX_MESSAGE_BYTES } from "./message-limit.ts";
import { maxRequestBytes } from "./request-limit.ts";
import { type RpcServer, startRpcServer } from "./server.ts";

const silent = pino({ level: "silent" });
const LIMIT = maxRequestBytes(CategoryService.method.createCategory);
let handle: (name: string) => Promise<string>;
beforeEach(() => {
  handle = async (name) => name.slice(0, 10);
});
const routes = (router: ConnectRouter) =>
  void router.service(CategoryService, {
    createCategory: async ({ category }) => ({ category: { id: 1n, name: await handle(category?.name ?? "") } }),
  });

async function started(): Promise<RpcServer> {
  const server = await startRpcServer({ host: "127.0.0.1", port: 0, log: silent, services: [CategoryService], routes });
  onTestFinished(() => server.close(0));
  return server;
}

const transports: [string, (baseUrl: string) => Transport][] = [
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web, HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["gRPC-Web, HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
  ["Connect, HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect, HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
  ["Connect, JSON", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false })],
];

describe.each(transports)("%s", (_, transport) => {
  const call = (server: RpcServer, name: string) =>
    createClient(CategoryService, transport(server.url)).createCategory({ category: { name } });

  test("is served", async () => {
    expect((await call(await started(), "dog")).category?.name).toBe("dog");
  });

  test("takes messages up to the limit", async () => {
    const almost = "x".repeat(LIMIT - 100);
    expect((await call(await started(), almost)).category?.name).toBe("xxxxxxxxxx");
  });

  test("refuses larger ones by their reason", async () => {
    const server = await started();
    for (const bytes of [LIMIT + 1, MAX_MESSAGE_BYTES + 1, 5 * MAX_MESSAGE_BYTES]) {
      const error = await call(server, "x".repeat(bytes)).catch(ConnectError.from);
      expect(error).toMatchObject({ code: Code.ResourceExhausted });
      expect(reasonOf(error as ConnectError)?.reason).toBe("PAYLOAD_TOO_LARGE");
    }
    expect((await call(server, "still there")).category?.name).toBe("still ther");
  });

  test("closing finishes what runs", async () => {
    const server = await started();
    const arrived = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<string>();
    handle = () => {
      arrived.resolve();
      return finish.promise;
    };
    const answer = call(server, "dog");
    await arrived.promise;
    const closed = server.close();
    expect(server.health.get("")).toBe(Status.NOT_SERVING);
    server.health.set(true);
    expect(server.health.get("")).toBe(Status.NOT_SERVING);
    finish.resolve("finished");
    expect((await answer).category?.name).toBe("finished");
    await closed;
    await expect(call(server, "late")).rejects.toThrow();
  });

  test("closing cuts off what takes too long", async () => {
    const server = await started();
    const arrived = Promise.withResolvers<void>();
    handle = () => {
      arrived.resolve();
      return new Promise(() => {});
    };
    const answer = call(server, "dog").catch(ConnectError.from);
    await arrived.promise;
    await server.close(50);
    expect(await answer).toBeInstanceOf(ConnectError);
  });
});

test("a packed message is not unpacked beyond the limit", async () => {
  const transport = createGrpcTransport({ baseUrl: (await started()).url, sendCompression: compressionGzip });
  const name = "x".repeat(3 * MAX_MESSAGE_BYTES);
  const answer = createClient(CategoryService, transport).createCategory({ category: { name } });
  await expect(answer).rejects.toMatchObject({ code: Code.ResourceExhausted });
});

describe("HTTP", () => {
  test("an unknown path is a short 404", async () => {
    const { url } = await started();
    const answer = await fetch(`${url}/petstore.category.v1.CategoryService/Nope`, { method: "POST", body: "{}" });
    expect([answer.status, await answer.text()]).toEqual([404, "There is no such RPC here.\n"]);
  });

  test("to a gRPC client an unknown RPC is UNIMPLEMENTED", async () => {
    const { url } = await started();
    const pets = createClient(PetService, createGrpcTransport({ baseUrl: url }));
    await expect(pets.getPet({})).rejects.toMatchObject({ code: Code.Unimplemented });
  });

  test("a query after the path is not part of it", async () => {
    const { url } = await started();
    const answer = await fetch(`${url}/grpc.health.v1.Health/Check?x=1`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(await answer.json()).toEqual({ status: "SERVING" });
  });

  describe("what is no request", () => {
    const error = vi.spyOn(console, "error");
    afterEach(() => error.mockReset());

    test("does not stop the server, and nothing is printed", async () => {
      const { url } = await started();
      const session = connectHttp2(url);
      const stream = session.request({
        ":method": "POST",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": "a:b:c",
      });
      stream.on("error", () => {}).end();
      stream.resume();
      await new Promise((resolve) => stream.once("close", resolve));
      session.close();
      expect(error).not.toHaveBeenCalled();
      const client = createClient(Health, createGrpcTransport({ baseUrl: url }));
      expect((await client.check({})).status).toBe(Status.SERVING);
    });
  });
});

describe("listening", () => {
  const start = (host: string, port: number) =>
    startRpcServer({ host, port, log: silent, services: [], routes: () => {} });

  test("on a taken port says which, and what to do", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    await expect(start("127.0.0.1", port)).rejects.toThrow(
      `Can't listen on 127.0.0.1:${port}: port ${port} is taken, perhaps by another petstore: end it, or move this one with PORT_BASE=9080.`,
    );
  });

  test("on an address of another machine says what to do", async () => {
    await expect(start("192.0.2.1", 0)).rejects.toThrow(/HOST=192\.0\.2\.1 is no address of this machine/);
  });
});
