/** Requests that arrive slowly, or break off: nobody else notices. */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { createRouterTransport } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { startGateway, testLimits } from "./fixtures/gateway.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const GET_PET = "/petstore.pet.v1.PetService/GetPet";
/** More than any pool of connections to a service would hold. */
const MANY = 140;

let gateway: Awaited<ReturnType<typeof startGateway>>;
let arrived = 0;
let calls = 0;
const said = vi.spyOn(console, "error").mockImplementation(() => {});

beforeAll(async () => {
  const transport = createRouterTransport(({ service }) =>
    service(PetService, {
      getPet: () => {
        calls++;
        return { pet: { name: "Rex" } };
      },
    }),
  );
  const limits = { rpcBytes: 64 * 1024, requestMs: testLimits.requestMs };
  const endpoint = rpcEndpoint({ basePath: "", services: [{ desc: PetService, transport }], limits, clock: Date.now });
  gateway = await startGateway(PetService, {}, { plugins: [endpoint] });
  gateway.app.server.on("request", () => arrived++);
});
afterAll(async () => {
  await gateway.app.close();
  said.mockRestore();
});
beforeEach(() => {
  arrived = 0;
  calls = 0;
});

const message = '{"petId":"7"}';
const framed = (text: string) => `\0\0\0\0${String.fromCharCode(text.length)}${text}`;
const kinds: Record<string, string> = {
  "Connect, JSON": post("application/json", message),
  "Connect, binary": post("application/proto", "\x08\x07"),
  "gRPC-Web": post("application/grpc-web+proto", framed("\x08\x07")),
  "in chunks": `POST ${GET_PET} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n${message}\r\n0\r\n\r\n`,
  "Connect by GET": `GET ${GET_PET}?encoding=json&message=%7B%7D HTTP/1.1\r\nHost: x\r\n\r\n`,
};

function post(type: string, body: string): string {
  return `POST ${GET_PET} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** A connection on which these bytes have been sent. */
async function sent(bytes: string): Promise<Socket> {
  const socket = connect(gateway.port, "127.0.0.1").on("error", () => {});
  await new Promise<void>((done) => socket.write(Buffer.from(bytes, "latin1"), () => done()));
  socket.resume();
  return socket;
}

const halves = (bytes: string) => Promise.all(Array.from({ length: MANY }, () => sent(bytes)));

async function ask() {
  const { status, text } = await gateway.call(GET_PET, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close" },
    body: message,
  });
  return [status, JSON.parse(text)];
}
const REX = [200, { pet: { name: "Rex" } }];

const open = () => new Promise((done) => gateway.app.server.getConnections((_, count) => done(count)));

test.each(Object.entries(kinds).filter(([kind]) => kind !== "Connect by GET"))(
  "many bodies that are slow to arrive keep nobody waiting, and none that breaks off is passed on: %s",
  async (_, bytes) => {
    const sockets = await halves(bytes.slice(0, -1));
    await expect.poll(() => arrived, { timeout: 20_000 }).toBe(MANY);
    expect(await ask()).toEqual(REX);
    // They were all still arriving when that answer came.
    expect(sockets.filter(({ closed }) => closed)).toEqual([]);
    for (const [i, socket] of sockets.entries()) i % 2 ? socket.destroy() : socket.resetAndDestroy();
    await expect.poll(open, { timeout: 20_000 }).toBe(0);
    expect(await ask()).toEqual(REX);
    expect([calls, said.mock.calls]).toEqual([2, []]);
  },
  60_000,
);

test.each(Object.entries(kinds))(
  "a connection may end after any byte, alone or behind another request: %s",
  async (_, bytes) => {
    for (const before of ["", bytes])
      for (let length = 1; length <= bytes.length; length++) {
        const socket = await sent(before + bytes.slice(0, length));
        // Some of them while the request is worked on, some before.
        if (length % 3 === 0) await turn();
        if (length % 2 === 0) socket.resetAndDestroy();
        else socket.destroy();
      }
    await expect.poll(open, { timeout: 20_000 }).toBe(0);
    expect(await ask()).toEqual(REX);
    expect(said.mock.calls).toEqual([]);
  },
  60_000,
);

test("a message that comes when its caller's time is over is told so", async () => {
  const [head = "", body = ""] = (kinds["Connect, JSON"] ?? "").split("\r\n\r\n");
  const socket = await sent(`${head}\r\nConnect-Timeout-Ms: 1\r\n\r\n${body.slice(0, -1)}`);
  await expect.poll(() => arrived, { timeout: 20_000 }).toBe(1);
  await sleep(50); // its timer was set before this one, and is shorter
  socket.write(body.slice(-1));
  const answer = await new Promise((done) => socket.once("data", (chunk) => done(String(chunk))));
  expect(answer).toMatch(/^HTTP\/1\.1 504 /);
  expect(answer).toContain('"reason":"REQUEST_TIMEOUT"');
});

test("a request without a host that can be one is refused", async () => {
  for (const host of ["Host: \r\n", "Host: a b\r\n"]) {
    const socket = await sent(`POST ${GET_PET} HTTP/1.0\r\n${host}Content-Type: application/json\r\n\r\n`);
    const answer = await new Promise((done) => socket.once("data", (chunk) => done(String(chunk))));
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("INVALID_HEADER");
  }
  expect([calls, said.mock.calls]).toEqual([0, []]);
});

test("HTTP/1.0 may leave the host out", async () => {
  const head = "Content-Type: application/json\r\nContent-Length: 2\r\n";
  const socket = await sent(`POST ${GET_PET} HTTP/1.0\r\n${head}\r\n{}`);
  const answer = await new Promise((done) => socket.once("data", (chunk) => done(String(chunk))));
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect([calls, said.mock.calls]).toEqual([1, []]);
});
