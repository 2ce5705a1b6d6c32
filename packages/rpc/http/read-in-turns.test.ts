import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { HALF_CLOSED_MS, readInTurns } from "./read-in-turns.ts";
import { createTurns, type Turns, type TurnsAtOnce, WORK_PER_TURN } from "./turns.ts";

const get = (path: string | number) => `GET /${path} HTTP/1.1\r\nhost: a\r\n\r\n`;
const many = (count: number) => Array.from({ length: count }, (_, i) => get(i)).join("");
const STOP = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
const url = (request: IncomingMessage) => request.url?.slice(1) ?? "";

async function started(handler: (request: IncomingMessage, response: ServerResponse) => void, turns = createTurns()) {
  const server = createServer((request, response) => {
    if (request.url === "/other") response.end("other");
    else handler(request, response);
  });
  readInTurns(server, turns);
  let read = 0;
  const closed: string[] = [];
  server.prependListener("request", (request, response) => {
    read++;
    response.once("close", () => closed.push(url(request)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const open = (localAddress?: string) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  onTestFinished(() => void server.close());
  return {
    server,
    open,
    /** How many requests node's parser has told of. */
    read: () => read,
    /** Those whose responses are over. */
    closed,
    async othersAreServed() {
      for (let i = 0; i < 20; i++) expect(await (await fetch(`http://127.0.0.1:${port}/other`)).text()).toBe("other");
    },
  };
}

/** Counts what is done until the event loop turns. */
function perTurn() {
  let [count, most] = [0, 0];
  return {
    count() {
      if (count === 0) setImmediate(() => (count = 0));
      most = Math.max(most, ++count);
    },
    most: () => most,
  };
}

test("of many pipelined requests few are read while the first runs; each is answered, in order", async () => {
  const running: ServerResponse[] = [];
  const first = Promise.withResolvers<void>();
  let isHeld = true;
  const { open, read, othersAreServed } = await started((request, response) => {
    response.setHeader("x", url(request));
    if (!isHeld) return void response.end();
    running.push(response);
    first.resolve();
  });
  const socket = open();
  socket.write(many(2000) + STOP);
  await first.promise;
  await othersAreServed();
  expect(running).toHaveLength(1);
  expect(read()).toBeLessThan(100);
  isHeld = false;
  for (const response of running) response.end();
  const order = [...(await text(socket)).matchAll(/^x: (\d*)/gm)].map(([, number]) => number);
  expect(order).toEqual([...Array.from({ length: 2000 }, (_, i) => String(i)), ""]);
});

test("a client that reads nothing is not read either", async () => {
  const { open, read, othersAreServed } = await started((_, response) => {
    response.end(Buffer.alloc(8 * 1024 * 1024)); // more than the system keeps for a connection
  });
  open().pause().write(many(2000));
  await othersAreServed();
  expect(read()).toBeLessThan(100);
});

test("others have their turn after each request of a connection, and after some of many connections", async () => {
  const [ofOne, ofAll] = [perTurn(), perTurn()];
  const { open } = await started((request, response) => {
    ofAll.count();
    if (request.headers.from === "one") ofOne.count();
    response.end();
  });
  const from = many(100).replaceAll("host: a", "host: a\r\nfrom: one");
  const sockets = Array.from({ length: 100 }, (_, i) => {
    const socket = open();
    socket.write((i === 0 ? from : many(100)) + STOP);
    return text(socket);
  });
  await Promise.all(sockets);
  expect(ofOne.most()).toBeLessThanOrEqual(2);
  expect(ofAll.most()).toBeLessThanOrEqual(2 * WORK_PER_TURN);
});

test("a request that waits for its turn when the server closes is answered", async () => {
  const waiting: (() => unknown)[] = [];
  let othersWait = false;
  const turns: TurnsAtOnce = Object.assign((_: unknown, begin: () => unknown) => void waiting.push(begin), {
    atOnce: () => !othersWait,
  });
  const { server, open } = await started((_, response) => response.end("answered"), turns);
  const accepted = once(server, "connection");
  const socket = open().setEncoding("latin1");
  socket.write(get(1));
  await once(socket, "data");
  const [connection] = await accepted;
  othersWait = true;
  socket.write(get(2));
  await vi.waitUntil(() => connection.readableLength > 0, { timeout: 30_000 });
  const closed = once(server.close(), "close");
  expect((await once(socket, "data"))[0]).toContain("answered");
  const goOn = setInterval(() => waiting.shift()?.());
  await closed;
  clearInterval(goOn);
});

test("addresses take turns", async () => {
  const callers = new Set<unknown>();
  const turns = createTurns();
  const { open } = await started(
    (_, response) => void response.end(),
    Object.assign<Turns, Pick<TurnsAtOnce, "atOnce">>(
      (caller, begin) => {
        callers.add(caller);
        turns(caller, begin);
      },
      { atOnce: () => false },
    ),
  );
  for (const localAddress of ["127.0.0.1", "127.0.0.2"]) await text(open(localAddress).end(STOP));
  expect([...callers]).toEqual(["127.0.0.1", "127.0.0.2"]);
});

test("the parser is given little at a time", async () => {
  const sizes: number[] = [];
  const whole = Promise.withResolvers<void>();
  const { open } = await started((request, response) => {
    request.on("data", (part: Buffer) => sizes.push(part.length)).on("end", () => whole.resolve());
    response.end();
  });
  const body = "x".repeat(100_000);
  open().write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  await whole.promise;
  expect(sizes.reduce((a, b) => a + b)).toBe(body.length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1024);
});

test("a body that nobody reads yet is not read, and arrives whole", async () => {
  const came = Promise.withResolvers<[IncomingMessage, ServerResponse]>();
  const { open, othersAreServed } = await started((...both) => came.resolve(both));
  const body = Buffer.alloc(16 * 1024 * 1024, "x");
  const socket = open();
  socket.write(`POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(body);
  const [request, response] = await came.promise;
  await othersAreServed();
  expect(request.readableLength).toBeLessThan(128 * 1024);
  expect((await buffer(request)).equals(body)).toBe(true);
  response.end("thanks");
  expect(await text(socket)).toMatch(/thanks$/);
});

test("an upload that is refused at once does not hold up the request behind it", async () => {
  const { open } = await started((request, response) => void response.end(`answer to ${url(request)}`));
  const socket = open();
  const body = "x".repeat(1_000_000);
  socket.write(`POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}${STOP}`);
  expect((await text(socket)).match(/answer to (upload)?/g)).toEqual(["answer to upload", "answer to "]);
});

test("a connection whose upload is read to its end after the server was closed ends", async () => {
  const { server, open } = await started((_, response) => void response.end("no"));
  const body = "x".repeat(100_000);
  const socket = open();
  socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  await once(socket, "data");
  await new Promise((resolve) => server.close(resolve));
});

test.each(["an answer that ends the connection", "a client that has gone"])(
  "requests behind %s are never begun, and end",
  async (what) => {
    const begun: string[] = [];
    const came = Promise.withResolvers<ServerResponse>();
    const { open, closed, othersAreServed } = await started((request, response) => {
      begun.push(url(request));
      came.resolve(response);
    });
    const socket = open();
    socket.write(get("first") + get("second"));
    const response = await came.promise;
    const over = once(response, "close");
    if (what.startsWith("an answer")) response.setHeader("connection", "close").end();
    else socket.resetAndDestroy();
    await over;
    await othersAreServed();
    expect(begun).toEqual(["first"]);
    expect(closed.slice(0, 2)).toEqual(["first", "second"]);
  },
);

test("a client that has ended its side is answered, though others have their turns before", async () => {
  const begun = Promise.withResolvers<ServerResponse>();
  const { open, othersAreServed } = await started((_, response) => begun.resolve(response));
  const socket = open();
  socket.end(get("a"));
  const answer = text(socket);
  const response = await begun.promise;
  await othersAreServed();
  response.end("late");
  expect(await answer).toContain("late");
});

test("a client that has ended its side and waits too long has gone: its request is given up", async () => {
  const begun = Promise.withResolvers<[IncomingMessage, ServerResponse]>();
  const { open } = await started((...exchange) => begun.resolve(exchange));
  const socket = open();
  socket.end(get("a"));
  const [request, response] = await begun.promise;
  const since = performance.now();
  await once(response, "close");
  expect(performance.now() - since).toBeGreaterThan(HALF_CLOSED_MS / 2);
  expect(request.destroyed).toBe(true);
  expect(await text(socket)).toBe("");
});

test("several requests of a client that has ended its side are all answered", async () => {
  const begun: ServerResponse[] = [];
  let came = Promise.withResolvers<void>();
  const { open } = await started((_, response) => {
    begun.push(response);
    came.resolve();
  });
  const socket = open();
  socket.end(many(3));
  const answers = text(socket);
  for (let i = 0; i < 3; i++) {
    await came.promise;
    came = Promise.withResolvers();
    begun[i]?.end();
  }
  expect((await answers).match(/^HTTP/gm)).toHaveLength(3);
});

/** As a server does that is no proxy. */
function refuseConnect(server: Server): void {
  server.on("connect", ({ socket }) => void server.emit("clientError", new Error("no proxy"), socket));
}

const CHUNKED = "POST /b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
test.each([
  ["what is no request", "nonsense\r\n\r\n", false],
  ["what is no request, and the end of the client's side,", "nonsense\r\n\r\n", true],
  ["a body that can't be read", `${CHUNKED}zz\r\n`, false],
  ["another version", "GET /b HTTP/2.0\r\nhost: a\r\n\r\n", false],
  ["another version with a request behind it", `GET /b HTTP/2.0\r\nhost: a\r\n\r\n${get("c")}`, false],
  ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", false],
  ["CONNECT, and the end of the client's side,", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", true],
  ["CONNECT with half a body", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nx", false],
])("%s behind a request is refused when that is answered", async (_, broken, ends) => {
  const first = Promise.withResolvers<ServerResponse>();
  const { server, open, othersAreServed } = await started((_request, response) => first.resolve(response));
  refuseConnect(server);
  const socket = open();
  const answers = text(socket);
  socket.write(get("a") + broken);
  if (ends) socket.end();
  const response = await first.promise;
  await othersAreServed();
  response.end();
  expect((await answers).match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
});

test("half a request behind one that takes long is refused when that is answered", async () => {
  const first = Promise.withResolvers<ServerResponse>();
  const { open } = await started((_request, response) => first.resolve(response));
  const socket = open();
  const answers = text(socket);
  socket.end(`${get("a")}GET /b HTTP/1.1\r\nho`);
  const response = await first.promise;
  await sleep(1.5 * HALF_CLOSED_MS);
  response.end();
  expect((await answers).match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
});

test("an answer that its client takes bit by bit arrives whole with CONNECT behind its request", async () => {
  const parts = Array.from({ length: 64 }, () => Buffer.alloc(256 * 1024, "x")); // more than the system keeps
  const { server, open } = await started((_request, response) => void Readable.from(parts).pipe(response));
  refuseConnect(server);
  const socket = open();
  socket.write(`${get("a")}CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n`);
  expect((await text(socket)).match(/x/g)).toHaveLength(parts.length * 256 * 1024);
});

test.each([
  ["behind one request", 1, 50_000],
  ["behind as many as are read ahead", 9, 400],
])("a body that has arrived %s is read", async (_, count, size) => {
  const { open } = await started(async (request, response) => {
    await sleep(3);
    response.end(`${(await buffer(request)).length} `);
  });
  for (let i = 0; i < 20; i++) {
    const socket = open();
    const head = `POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${size}\r\n\r\n`;
    socket.write(many(count) + head + "x".repeat(size));
    expect(await text(socket)).toContain(`${size} `);
  }
});

test.each([
  ["is answered", (response: ServerResponse) => void response.end("done"), /^HTTP\/1\.1 200 OK.*\r\n\r\ndone$/s],
  ["has begun to be answered", (response: ServerResponse) => void response.write("be"), /^HTTP\/1\.1 200 OK.*be\r\n$/s],
])("a request that %s before its content has come is not answered twice", async (_, answer, all) => {
  const { server, open } = await started((request, response) => {
    request.resume();
    answer(response);
  });
  const failed = once(server, "clientError");
  const socket = open();
  socket.write("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n");
  const [first] = (await once(socket, "data")) as [Buffer];
  socket.write("what is no chunk\r\n");
  await failed;
  expect(`${first}${await text(socket)}`).toMatch(all);
});
