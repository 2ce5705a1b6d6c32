/** Clients that keep their connections, across a stop: every request gets its answer. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { createClosing } from "./closing.ts";
import { startGateway } from "./fixtures/gateway.ts";
import { createReadiness, health } from "./health.ts";

const GET = "GET /pets/1 HTTP/1.1\r\nHost: x\r\n\r\n";
const CLOSE = /^connection: close\r$/im;

interface Connection {
  readonly socket: Socket;
  /** What came so far. */
  text(): string;
  /** Resolves with all that came when there are so many answers, or when the connection is closed. */
  answers(count: number): Promise<string[]>;
}

function open(port: number): Connection {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  let changed = Promise.withResolvers<void>();
  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  socket.setEncoding("latin1").on("data", (chunk) => {
    text += chunk;
    wake();
  });
  socket.on("error", wake).on("close", wake);
  const split = () => text.split(/(?=HTTP\/1\.1 )/).filter((answer) => answer.includes("}"));
  return {
    socket,
    text: () => text,
    async answers(count) {
      while (split().length < count && !socket.closed) await changed.promise;
      return split();
    },
  };
}

/** A gateway whose lame-duck time ends when the test says so. */
async function start() {
  const lameDuck = Promise.withResolvers<void>();
  const gate = { wait: Promise.resolve() };
  const closing = createClosing({ lameDuckMs: 1, sleep: () => lameDuck.promise });
  const gateway = await startGateway(
    PetService,
    {
      getPet: async () => {
        await gate.wait;
        return { pet: { name: "Rex" } };
      },
    },
    {
      plugins: [health("", createReadiness({ services: [], isAccepting: closing.isAccepting, clock: Date.now }))],
    },
  );
  return { ...gateway, gate, close: () => closing.close(gateway.app), endLameDuck: lameDuck.resolve };
}

test("clients that ask without a pause lose nothing, and go when they are told", async () => {
  const { port, close, endLameDuck } = await start();
  const counts = { asked: 0, answered: 0, told: 0 };
  const rounds = Array.from({ length: 24 }, () => Promise.withResolvers<void>());
  const clients = rounds.map(async ({ resolve }) => {
    const connection = open(port);
    for (let round = 1; ; round++) {
      counts.asked++;
      connection.socket.write(GET);
      const answer = (await connection.answers(round))[round - 1];
      if (answer === undefined) return;
      counts.answered++;
      if (round === 3) resolve();
      if (CLOSE.test(answer)) break;
    }
    counts.told++;
  });
  await Promise.all(rounds.map(({ promise }) => promise));
  const closed = close();
  await Promise.all(clients);
  endLameDuck();
  await closed;
  expect(counts).toEqual({ asked: counts.asked, answered: counts.asked, told: 24 });
});

test("a stop is told at once, new and idle connections are served all the while, and idle ones are closed last", async () => {
  const { port, call, close, endLameDuck } = await start();
  const [idle, silent] = [open(port), open(port)];
  for (const { socket } of [idle, silent]) socket.write(GET);
  expect((await idle.answers(1))[0]).not.toMatch(CLOSE);
  await silent.answers(1);
  const closed = close();
  expect((await call("/readyz")).status).toBe(503);
  expect((await call("/pets/1")).headers.get("connection")).toBe("close");
  idle.socket.write(GET);
  expect((await idle.answers(2))[1]).toMatch(CLOSE);
  expect(silent.socket.closed).toBe(false);
  endLameDuck();
  await closed;
  await silent.answers(2);
  expect([silent.socket.closed, silent.text().match(/HTTP/g)?.length]).toEqual([true, 1]);
});

test("a request that waits for 100 is told, too", async () => {
  const { port, close, endLameDuck } = await start();
  const closed = close();
  const { socket, text } = open(port);
  socket.write(GET.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n"));
  await expect.poll(text, { timeout: 10_000 }).toContain("Rex");
  expect(text()).toMatch(CLOSE);
  endLameDuck();
  await closed;
});

test("connections that wait to be accepted when the server stops to listen are served, once", async () => {
  const { port, close, endLameDuck } = await start();
  endLameDuck();
  const connections = Array.from({ length: 50 }, () => open(port));
  await Promise.all(connections.map(({ socket }) => once(socket, "connect")));
  const closed = close();
  for (const { socket } of connections) socket.write(GET);
  const answers = await Promise.all(connections.map(({ answers }) => answers(1)));
  expect(answers.map(([answer = ""]) => CLOSE.test(answer))).toEqual(connections.map(() => true));
  await closed;
});

test("requests that have arrived on idle connections, and are not read when they are to be closed, are answered", async () => {
  const { app, port, gate, close, endLameDuck } = await start();
  const slow = Promise.withResolvers<void>();
  const last = open(port);
  const idle = Array.from({ length: 20 }, () => open(port));
  for (const { socket, answers } of idle) {
    socket.write(GET);
    await answers(1);
  }
  gate.wait = slow.promise;
  const running = once(app.server, "request");
  last.socket.write(GET);
  const [, response] = await running;
  const closed = close();
  endLameDuck();
  while (app.server.listening) await nextTurn();
  gate.wait = Promise.resolve();
  // The last answer is out, and the server has had no turn to read.
  response.prependListener("close", () => {
    for (const { socket } of idle) socket.write(GET);
  });
  slow.resolve();
  await closed;
  const all = await Promise.all(idle.map(({ answers }) => answers(2)));
  expect(all.map((answers) => answers.length)).toEqual(idle.map(() => 2));
});

test("requests that run at the stop, and those that came behind them, are answered before their connection ends", async () => {
  const { app, port, gate, close, endLameDuck } = await start();
  const slow = Promise.withResolvers<void>();
  gate.wait = slow.promise;
  const arrived = (count: number) =>
    new Promise<void>((resolve) => app.server.on("request", () => --count === 0 && resolve()));
  const connections = [open(port), open(port)] as const;
  const [alone, pipelined] = connections;
  const running = arrived(2);
  for (const { socket } of connections) socket.write(GET);
  await running;
  const closed = close();
  const behind = arrived(2);
  pipelined.socket.write(GET + GET);
  await behind;
  endLameDuck();
  slow.resolve();
  await closed;
  expect((await alone.answers(2)).map((answer) => CLOSE.test(answer))).toEqual([true]);
  expect((await pipelined.answers(4)).map((answer) => CLOSE.test(answer))).toEqual([false, false, true]);
});

test("of many pipelined requests that arrived before the stop each is answered, and the last one ends the connection", async () => {
  const { app, port, gate, close, endLameDuck } = await start();
  const slow = Promise.withResolvers<void>();
  gate.wait = slow.promise;
  const { socket, answers } = open(port);
  const running = once(app.server, "request");
  socket.write(GET.repeat(8));
  await running;
  const closed = close();
  endLameDuck();
  slow.resolve();
  await closed;
  expect((await answers(9)).map((answer) => CLOSE.test(answer))).toEqual([...Array(7).fill(false), true]);
});
