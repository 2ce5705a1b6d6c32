import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { BoundSocket, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";

type Env = Record<string, string>;

/** Where no services are, also while a petstore runs at the usual ports. */
const nowhere: Env = Object.fromEntries(
  ["PET", "CATEGORY", "ORDER", "INVENTORY"].map((name) => [`${name}_URL`, "http://127.0.0.1:1"]),
);

/** Runs the gateway until `until` is in its output, or until it ends by itself. */
async function run(env: Env, until?: string, socket?: number) {
  const child = spawn(process.execPath, ["gateway/main.ts"], {
    env: {
      PATH: process.env.PATH,
      INTERNAL_SECRET: "a-secret-of-the-petstore-under-test",
      LOG_FORMAT: "json",
      PORT: "0",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe", ...(socket === undefined ? [] : [socket])],
  }) as ChildProcessByStdio<null, Readable, Readable>;
  const stderr = text(child.stderr);
  let stdout = "";
  for await (const chunk of child.stdout) {
    stdout += chunk;
    if (until !== undefined && stdout.includes(until)) break;
  }
  return { child, stdout, stderr };
}

/** What it says when it refuses to start. */
async function refusal(env: Env): Promise<string> {
  const { child, stderr } = await run(env);
  if (child.exitCode === null) await once(child, "exit");
  expect(child.exitCode).toBe(1);
  return (await stderr).trim();
}

test("starts without its services, says where it is, and stops when told to", async () => {
  const { child, stdout } = await run({ HTTP_BASE_PATH: "/api", ...nowhere }, "ready at");
  const [base] = /http:\/\/127\.0\.0\.1:\d+\/api/.exec(stdout) ?? [];
  try {
    const status = async (path: string) => (await fetch(`${base}${path}`, { headers: { connection: "close" } })).status;
    expect(await status("/healthz")).toBe(200);
    expect(await status("/readyz")).toBe(503);
    expect(await status("/pets/1")).toBe(503);
    const content = { method: "POST", headers: { "content-type": "application/json" }, body: '{"name":"dogs"}' };
    expect(await (await fetch(`${base}/categories`, content)).json()).toMatchObject({
      code: "UNAVAILABLE",
      message: "CategoryService can't be reached now. Nothing was done. Try again in a second.",
    });
    const document = await (await fetch(`${base}/openapi.json`)).json();
    expect(document).toMatchObject({ servers: [{ url: base }], info: { version: "1.0.0" } });
    expect(await (await fetch(`${base}/docs`)).text()).toContain(`curl -i ${base}/pets/1`);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await once(child, "exit")).toEqual([0, null]);
}, 60_000);

test("FAULTS_SEED draws which calls the faults of FAULTS_FILE strike", async () => {
  const dir = mkdtempSync(join(tmpdir(), "faults-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const FAULTS_FILE = join(dir, "faults.json");
  writeFileSync(FAULTS_FILE, JSON.stringify([{ match: "*", rate: 0.5, code: "INTERNAL" }]));
  const struck = async (env: Env) => {
    const { child, stdout } = await run({ ...nowhere, FAULTS_FILE, ...env }, "ready at");
    const [base] = /http:\/\/127\.0\.0\.1:\d+/.exec(stdout) ?? [];
    const answers: number[] = [];
    for (let i = 0; i < 16; i++) answers.push((await fetch(`${base}/pets/1`)).status);
    child.kill("SIGTERM");
    await once(child, "exit");
    return answers;
  };
  const first = await struck({});
  expect(new Set(first)).toEqual(new Set([500, 503]));
  expect(await struck({ FAULTS_SEED: "1" })).toEqual(first);
  expect(await struck({ FAULTS_SEED: "2" })).not.toEqual(first);
}, 180_000);

test("PUBLIC_URL is the address that the document names", async () => {
  const settings = { PUBLIC_URL: "https://shop.example/", HTTP_BASE_PATH: "/api" };
  const { child, stdout } = await run(settings, "ready at");
  const [base] = /http:\/\/127\.0\.0\.1:\d+\/api/.exec(stdout) ?? [];
  try {
    const document = await (await fetch(`${base}/openapi.json`)).json();
    expect(document).toMatchObject({ servers: [{ url: "https://shop.example/api" }] });
  } finally {
    child.kill("SIGTERM");
  }
  expect(await once(child, "exit")).toEqual([0, null]);
}, 60_000);

test("warns of a misspelled setting, and where other machines need no credentials", async () => {
  const beyond = { HOST: "0.0.0.0", ALLOW_UNAUTHENTICATED: "beyond-loopback" };
  const lines = [
    /"level":"warn".*RATE_LIMT has no effect: perhaps RATE_LIMIT is meant/,
    /"level":"warn".*idempotency keys/,
  ];
  for (const [env, expected] of [
    [{ ...beyond, RATE_LIMT: "600/min" }, [true, true]],
    [{}, [false, false]],
  ] as const) {
    const { child, stdout } = await run(env, "ready at");
    child.kill("SIGTERM");
    await once(child, "exit");
    expect(lines.map((line) => line.test(stdout))).toEqual(expected);
  }
}, 180_000);

test("LISTEN_FDS: listens on the socket that it is started with, where connections wait from one run to the next", async () => {
  using socket = new BoundSocket({ host: "127.0.0.1" });
  const url = `http://127.0.0.1:${socket.address().port}/healthz`;
  const start = () => run({ LISTEN_FDS: "1", LAME_DUCK: "0s" }, "ready at", socket.fd());
  const { child: first, stdout } = await start();
  expect(stdout).toContain(`ready at http://127.0.0.1:${socket.address().port}`);
  expect((await fetch(url, { headers: { connection: "close" } })).status).toBe(200);
  first.kill("SIGKILL");
  await once(first, "exit");
  const answer = fetch(url, { headers: { connection: "close" } });
  const { child: second } = await start();
  try {
    expect((await answer).status).toBe(200);
  } finally {
    second.kill("SIGTERM");
  }
  expect(await once(second, "exit")).toEqual([0, null]);
}, 180_000);

test("LISTEN_FDS: a socket that other machines reach is refused where nobody is asked who calls", async () => {
  using socket = new BoundSocket({ host: "0.0.0.0" });
  const told = { LISTEN_FDS: "1", LAME_DUCK: "0s", ALLOW_UNAUTHENTICATED: "beyond-loopback" };
  const { child: open } = await run(told, "ready at", socket.fd());
  open.kill("SIGTERM");
  expect(await once(open, "exit")).toEqual([0, null]);
  // It waits at the socket, which listens from now on.
  const answered = vi.fn();
  const waiting = request({ port: socket.address().port, path: "/healthz" }, answered).on("error", () => {});
  onTestFinished(() => void waiting.destroy());
  waiting.end();
  const { child, stderr } = await run({ LISTEN_FDS: "1", LAME_DUCK: "2s" }, undefined, socket.fd());
  if (child.exitCode === null) await once(child, "exit");
  expect(child.exitCode).toBe(1);
  expect(await stderr).toContain("the socket of LISTEN_FDS, on 0.0.0.0, would let other machines call gateway");
  expect(answered).not.toHaveBeenCalled();
}, 180_000);

test.each([
  ["0.0.0.0", "127.0.0.1", 200],
  ["127.0.0.1", "0.0.0.0", 421],
])(
  "LISTEN_FDS: a socket on %s says which names are answered to, and not HOST=%s",
  async (host, HOST, status) => {
    using socket = new BoundSocket({ host });
    const told = { LISTEN_FDS: "1", LAME_DUCK: "0s", HOST, ALLOW_UNAUTHENTICATED: "beyond-loopback" };
    const { child } = await run(told, "ready at", socket.fd());
    const asked = request({ port: socket.address().port, path: "/docs", headers: { host: "shop.example" } }).end();
    const [answer] = await once(asked, "response");
    answer.resume();
    child.kill("SIGTERM");
    expect([answer.statusCode, await once(child, "exit")]).toEqual([status, [0, null]]);
  },
  60_000,
);

test("LISTEN_FDS without a socket is a problem of the variable", async () => {
  expect(await refusal({ LISTEN_FDS: "1" })).toMatch(/LISTEN_FDS=1 says that descriptor 3 is a socket/);
}, 60_000);

test("goes on serving when told to stop, unready, and ends each connection with an answer that says so", async () => {
  const { child, stdout } = await run({ LAME_DUCK: "60s" }, "ready at");
  const port = Number(/http:\/\/127\.0\.0\.1:(\d+)/.exec(stdout)?.[1]);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const get = async (path: string) => {
    const [response] = (await once(request({ port, path, agent }).end(), "response")) as [IncomingMessage];
    await text(response);
    return { connection: response.headers.connection, status: response.statusCode };
  };
  try {
    expect((await get("/healthz")).connection).toBe("keep-alive");
    child.kill("SIGTERM");
    // The first answer after the signal comes on the connection that is open, and is its last.
    while ((await get("/healthz")).connection !== "close");
    for (let i = 0; i < 3; i++) expect(await get("/readyz")).toEqual({ connection: "close", status: 503 });
  } finally {
    agent.destroy();
  }
  // Asked again, and not by the copies of one signal that arrive at the same time, it ends at once.
  const again = setInterval(() => child.kill("SIGTERM"), 200);
  expect(await once(child, "exit").finally(() => clearInterval(again))).toEqual([143, null]);
}, 60_000);

test("a wrong value is one line", async () => {
  expect(await refusal({ MAX_JSON_DEPTH: "deep" })).toBe(
    "MAX_JSON_DEPTH=deep is wrong: it must be a whole number from 1 to 1000.",
  );
}, 60_000);

test("a sunset before the deprecation that the contract names is one line", async () => {
  expect(await refusal({ SUNSET_AT: "2026-10-31" })).toBe(
    "The sunset (2026-10-31T00:00:00.000Z) must not be before the deprecation (2026-11-01T00:00:00.000Z). " +
      "Change SUNSET_AT or DEPRECATED_AT.",
  );
}, 60_000);

test("a certificate that is not there is one line", async () => {
  expect(await refusal({ TLS_CERT: "nowhere/cert.pem", TLS_KEY: "nowhere/key.pem" })).toBe(
    "TLS_CERT, TLS_KEY can't be used: the first: there is no such file.",
  );
}, 60_000);

test("a port that is taken is one line", async () => {
  const other = createServer();
  await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
  const { port } = other.address() as { port: number };
  try {
    const line = await refusal({ PORT: String(port) });
    expect(line).toContain(`port ${port} is taken`);
    expect(line).not.toContain("\n");
  } finally {
    other.close();
  }
}, 60_000);
