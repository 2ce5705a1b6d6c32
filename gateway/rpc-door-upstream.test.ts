/** The door before servers that do not behave. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { Secret } from "#shared/config.ts";
import { rpcDoor } from "./rpc-door.ts";
import { balancerOf, type Seen, sendRaw, startGateway } from "./testing.ts";

const GET_PET = "/petstore.pet.v1.PetService/GetPet";

/** Runs `check` against a door whose service answers by `listener`. */
async function before(
  listener: RequestListener,
  check: (call: (init?: RequestInit) => Promise<Seen>, port: number) => Promise<void>,
) {
  const service = createServer(listener);
  await new Promise<void>((done) => service.listen(0, "127.0.0.1", done));
  const door = rpcDoor({
    basePath: "",
    services: [
      { desc: PetService, balancer: balancerOf(`http://127.0.0.1:${(service.address() as AddressInfo).port}`) },
    ],
    limits: { rpcBytes: 1024, requestMs: 100 },
    secret: new Secret("a-secret-of-the-petstore"),
  });
  const gateway = await startGateway(PetService, {}, { plugins: [door] });
  try {
    await check((init) => gateway.call(GET_PET, init), gateway.port);
  } finally {
    await gateway.app.close();
    service.closeAllConnections();
    await new Promise((done) => service.close(done));
  }
}

const post = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };

test("what a service answers is passed on and not asked for again", async () => {
  let calls = 0;
  const refuse: RequestListener = (_, response) => {
    calls++;
    response.writeHead(503, { "content-type": "application/json" }).end('{"code":"unavailable"}');
  };
  await before(refuse, async (call) => {
    const { status, text } = await call();
    expect([status, text, calls]).toEqual([503, '{"code":"unavailable"}', 1]);
  });
});

test("a service that is stuck is told in the protocol's own form", async () => {
  await before(
    () => {},
    async (call) => {
      const { status, text } = await call(post);
      expect([status, JSON.parse(text).code]).toEqual([504, "deadline_exceeded"]);
    },
  );
});

test("a service that hangs up is told in the protocol's own form", async () => {
  await before(
    (request) => request.socket.destroy(),
    async (call) => {
      const { status, text } = await call(post);
      expect([status, JSON.parse(text).code]).toEqual([503, "unavailable"]);
      const grpcWeb = await call({ ...post, headers: { "content-type": "application/grpc-web+proto" } });
      expect([grpcWeb.status, grpcWeb.headers.get("grpc-status"), grpcWeb.text]).toEqual([200, "14", ""]);
    },
  );
});

test("replicas have their turns, and one that is gone is passed over", async () => {
  const start = async (name: string) => {
    const service = createServer((_, response) =>
      response.writeHead(200, { "content-type": "application/json", connection: "close" }).end(name),
    );
    await new Promise<void>((done) => service.listen(0, "127.0.0.1", done));
    return { service, url: `http://127.0.0.1:${(service.address() as AddressInfo).port}` };
  };
  const [a, b] = [await start("a"), await start("b")];
  const door = rpcDoor({
    basePath: "",
    services: [{ desc: PetService, balancer: balancerOf(a.url, b.url) }],
    limits: { rpcBytes: 1024, requestMs: 10_000 },
    secret: new Secret("a-secret-of-the-petstore"),
  });
  const gateway = await startGateway(PetService, {}, { plugins: [door] });
  const answers = async (count: number) => {
    const all: string[] = [];
    for (let i = 0; i < count; i++) {
      const { status, text } = await gateway.call(GET_PET, post);
      all.push(status === 200 ? text : String(status));
    }
    return all.join(" ");
  };
  try {
    expect(await answers(4)).toBe("a b a b");
    await new Promise((done) => a.service.close(done));
    expect(await answers(4)).toBe("503 b b b");
  } finally {
    await gateway.app.close();
    await new Promise((done) => b.service.close(done));
  }
});

test("a GET that claims to have a body is forwarded without one", async () => {
  const echo: RequestListener = ({ headers }, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(headers["content-length"] ?? "none"));
  };
  await before(echo, async (_, port) => {
    const head = `GET ${GET_PET} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n`;
    const answer = await sendRaw(port, `${head}hi`, { end: false });
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain('"none"');
  });
});
