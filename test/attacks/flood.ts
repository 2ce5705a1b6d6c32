/** Floods of a started petstore, over real sockets: what a hostile client sends, and what must hold all the same. */
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { get as getHttp } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { get as getHttps } from "node:https";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { expect } from "vitest";
import { type ProcessName, processNames } from "../../processes/names.ts";
import { openShop } from "../api/cases/shop.ts";
import { inTurn } from "../harness/instances.ts";
import { type Petstore, type PetstoreOptions, startPetstore } from "../harness/petstore.ts";
import { listPath } from "./requests.ts";

export type Target = "gateway" | "pet";

/** What a small machine can spare for one process. */
const MOST_BYTES = 2 ** 30;
/** A time limit for a test, and not what is expected. */
export const timeout = 180_000;
/** For as long as this a flood goes on at most when the attacked process is still busy with what was sent. */
const BUSY_MS = 5_000;

export interface Connecting {
  readonly reads?: boolean;
  readonly protocol?: "h2" | "http/1.1";
  /** The address that they come from. */
  readonly from?: string;
}

export interface Flood {
  readonly port: number;
  /** Where the next connection to a port should come from; floods come from several addresses. */
  from(): string;
  /**
   * Opens connections, and `begin` sends over each. What comes back is only read with `reads`. Connections that the other side
   * closes are opened again, at most `count` in all. Over TLS they speak HTTP/2, or `protocol`. They come from several
   * addresses unless `from` names one.
   */
  connect(count: number, begin: (socket: Socket) => void, options?: Connecting): Promise<void>;
  /** Calls `send` for every open connection, again and again. */
  repeat(times: number, send: (socket: Socket, round: number) => void, everyMs?: number): Promise<void>;
  /** Calls `end` when the flood is over. */
  defer(end: () => void): void;
}

interface Run {
  readonly name: ProcessName;
  readonly pid: number;
  readonly logged: number;
}

/** What is sent, in words, and how. */
export type Attack = readonly [string, (flood: Flood) => Promise<void>];

export interface Attacked {
  readonly petstore: Petstore;
  /** Lets `attack` go on until the process has dealt with it, then checks what must hold. Returns what was seen. */
  survives(which: Target, attack: (flood: Flood) => Promise<void>): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A petstore with pets whose list is as large as lists can be. */
export async function startAttacked(options: PetstoreOptions = {}): Promise<Attacked> {
  const petstore = await startPetstore({ ...options, env: { LOG_LEVEL: "info", ...options.env } });
  const scheme = options.env?.TLS_CERT === undefined ? "http" : "https";
  if (scheme === "http") await fill(petstore);

  const portOf = (which: Target) => Number(new URL(petstore.url(which)).port);
  const path = { gateway: "/pets?limit=1", pet: listPath(1) };
  const asked = { rejectUnauthorized: false, agent: false, timeout: 10_000 };

  /** Asks as somebody else does, over a connection of its own for each protocol. */
  async function serve(which: Target): Promise<void> {
    const url = `${scheme}://127.0.0.1:${portOf(which)}`;
    const request = (scheme === "https" ? getHttps : getHttp)(url + path[which], asked);
    request.once("timeout", () => request.destroy(new Error("no answer in time")));
    const [response] = await once(request, "response");
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`HTTP/1.1: ${response.statusCode} ${body}`);
    const session = connectHttp2(url, { rejectUnauthorized: false });
    try {
      const { promise, reject } = Promise.withResolvers<never>();
      session.once("error", reject).once("close", () => reject(new Error("HTTP/2: closed without an answer")));
      const stream = session.request({ ":path": path[which] }, { signal: AbortSignal.timeout(10_000) });
      const [headers] = await Promise.race([once(stream, "response"), promise]);
      const said = await text(stream);
      if (headers[":status"] !== 200) throw new Error(`HTTP/2: ${headers[":status"]} ${said}`);
    } finally {
      session.destroy();
    }
  }

  /** Asks until the answer is good; the petstore is not restarted meanwhile. */
  async function served(which: Target): Promise<void> {
    const until = Date.now() + timeout / 2;
    for (;;) {
      try {
        return await serve(which);
      } catch (error) {
        if (Date.now() > until) throw new Error(`The ${which} does not serve others any more.`, { cause: error });
        await sleep(20);
      }
    }
  }

  async function survives(which: Target, attack: (flood: Flood) => Promise<void>): Promise<string> {
    await beginAfresh();
    await served(which);
    const before = runs();
    for (const { pid } of before) forgetPeak(pid);
    const { flood, end } = openFlood(portOf(which), scheme);
    const others = watchOthers(() => serve(which));
    let again = 0;
    try {
      await attack(flood).finally(() => isIdle(petstore.pid(which) || petstore.pid("gateway")).finally(end));
      for (const run of before) checkRuns(run);
      const ended = performance.now();
      await served(which);
      again = performance.now() - ended;
    } finally {
      await others.stop();
    }
    for (const name of ["gateway", "pet"] as const) await served(name);
    await expect.poll(readiness, { timeout: timeout / 2 }).toContain('"failing":[]');
    for (const run of before) checkRuns(run);
    const peaks = before.map(({ name, pid }) => ({ name, bytes: peakOf(pid) }));
    const shown = peaks.map(({ name, bytes }) => `${name} ${Math.round(bytes / 2 ** 20)} MiB`).join(", ");
    const seen = `peak ${shown}; served again after ${Math.round(again)} ms; ${others.seen()}`;
    expect(
      peaks.filter(({ bytes }) => bytes >= MOST_BYTES),
      seen,
    ).toEqual([]);
    return seen;
  }

  /** The processes as they run now, and how much each has logged. */
  function runs(): readonly Run[] {
    const running = processNames.filter((name) => petstore.pid(name) > 0);
    return running.map((name) => ({ name, pid: petstore.pid(name), logged: petstore.logs(name).length }));
  }

  /** It is the same process as before, and has not logged that it has to end. */
  function checkRuns({ name, pid, logged }: Run): void {
    const logs = petstore.logs(name);
    const fatal = logs.indexOf('"level":"fatal"', logged);
    expect(fatal < 0 ? "" : logs.slice(logs.lastIndexOf("\n", fatal) + 1, fatal + 2000)).toBe("");
    expect([name, petstore.isRunning(name), petstore.pid(name)]).toEqual([name, true, pid]);
  }

  /** What one attack has left, for V8 gives little back, does not count for the next. */
  async function beginAfresh(): Promise<void> {
    for (const name of ["gateway", "pet"] as const) {
      const isRunning = petstore.isRunning(name);
      if (petstore.pid(name) === 0 || (isRunning && residentOf(petstore.pid(name)) < MOST_BYTES / 2)) continue;
      if (isRunning) await petstore.kill(name);
      await petstore.start(name);
      await expect.poll(readiness, { timeout: timeout / 2 }).toContain('"failing":[]');
    }
  }

  async function readiness(): Promise<string> {
    const get = scheme === "https" ? getHttps : getHttp;
    const [answer] = await once(get(`${scheme}://127.0.0.1:${portOf("gateway")}/readyz`, asked), "response");
    return text(answer);
  }

  return { petstore, survives, [Symbol.asyncDispose]: () => petstore.stop() };
}

async function fill(petstore: Petstore): Promise<void> {
  const shop = openShop(petstore);
  const { id: categoryId } = await shop.category();
  // As many, and as large, as one answer can hold.
  const pets = Array.from({ length: 100 }, () => shop.pet({ name: "🐕".repeat(200), categoryId }));
  await Promise.all(pets);
}

const ADDRESSES = Array.from({ length: 8 }, (_, i) => `127.0.1.${1 + i}`);

/** A flood from these addresses, each in its turn, and how it ends. */
export function openFlood(port: number, scheme: "http" | "https", addresses: readonly string[] = ADDRESSES) {
  const stack = new DisposableStack();
  const open = new Set<Socket>();
  let isOver = false;
  const from = inTurn(addresses);

  async function one(
    begin: (socket: Socket) => void,
    { reads, protocol = "h2", from: localAddress = from() }: Connecting,
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const options = { port, host: "127.0.0.1", localAddress };
    const isSecure = scheme === "https";
    const socket = isSecure
      ? connectTls({ ...options, rejectUnauthorized: false, ALPNProtocols: [protocol] })
      : connect(options);
    open.add(socket);
    socket
      .on("error", () => {})
      .once("close", () => void open.delete(socket))
      .once("close", () => resolve());
    socket.once(isSecure ? "secureConnect" : "connect", () => {
      if (isOver) return void socket.destroy();
      if (reads) socket.resume();
      begin(socket);
      resolve();
    });
    await promise;
  }

  const flood: Flood = {
    port,
    from,
    async connect(count, begin, connecting = {}) {
      let left = count;
      const openOne = () =>
        one((socket) => {
          socket.once("close", () => {
            if (!isOver && left-- > 0) void openOne();
          });
          begin(socket);
        }, connecting);
      await Promise.all(Array.from({ length: count }, openOne));
    },
    async repeat(times, send, everyMs = 50) {
      for (let round = 0; round < times; round++) {
        for (const socket of open) if (!socket.connecting && socket.writable) send(socket, round);
        await sleep(everyMs);
      }
    },
    defer: (end) => stack.defer(end),
  };
  async function end(): Promise<void> {
    isOver = true;
    stack.dispose();
    const closed = [...open].map((socket) => new Promise((resolve) => socket.once("close", resolve).destroy()));
    await Promise.all(closed);
  }
  return { flood, end };
}

/** Asks again and again, for the report alone. */
export function watchOthers(serve: () => Promise<void>) {
  let [isOver, asked, served, slowest] = [false, 0, 0, 0];
  const done = (async () => {
    while (!isOver) {
      const began = performance.now();
      asked++;
      await serve().then(
        () => served++,
        () => {},
      );
      slowest = Math.max(slowest, performance.now() - began);
      await sleep(200);
    }
  })();
  return {
    stop(): Promise<void> {
      isOver = true;
      return done;
    },
    seen: () => `meanwhile ${served} of ${asked} others were served, the slowest answer took ${Math.round(slowest)} ms`,
  };
}

/** Resolves when a process has rested for half a second, or has ended, or after `BUSY_MS`. */
async function isIdle(pid: number): Promise<void> {
  const until = performance.now() + BUSY_MS;
  for (let before = 0; existsSync(`/proc/${pid}`); ) {
    const now = cpuTicks(pid);
    // Of 100 ticks a second.
    if (now - before <= 5 || performance.now() > until) return;
    before = now;
    await sleep(500);
  }
}

/** The time that a process has run, in hundredths of a second (proc_pid_stat(5)). */
function cpuTicks(pid: number): number {
  const [, , ...fields] = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/\(.*\)/, "")
    .split(/\s+/);
  return Number(fields[10]) + Number(fields[11]);
}

/** The largest resident memory of a process, since `forgetPeak` where the system allows that (proc_pid_clear_refs(5)). */
const peakOf = (pid: number): number => statusOf(pid, "VmHWM");
const residentOf = (pid: number): number => statusOf(pid, "VmRSS");
const statusOf = (pid: number, field: string): number =>
  1024 * Number(new RegExp(`^${field}:\\s*(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

function forgetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
  } catch {
    // It counts from the start of the process then.
  }
}
