/** `REPLICAS`: several processes of a kind under one launcher, on one MongoDB. */
import { createServer } from "node:net";
import { join } from "node:path";
import { listen } from "@petstore/rpc/http/listen";
import { describe, expect, test } from "vitest";
import { type Run, run } from "../packages/runtime/fixtures/run.ts";
import { freePorts } from "../test/harness/instances.ts";
import { mongodbMissing, openPlace } from "../test/harness/mongodb.ts";

const script = join(import.meta.dirname, "main.ts");
const timeout = 240_000;

const started = (env: Record<string, string>): Run =>
  run([script], { REPLICAS: "gateway:2,pet:2", LOG_LEVEL: "debug", PATH: process.env.PATH ?? "", ...env });

/** Lines that a process has logged. */
const linesOf = ({ output }: Run, name: string) =>
  output()
    .split("\n")
    .filter((line) => line.includes(`"service":"${name}"`));
const pidOf = (it: Run, name: string): number => JSON.parse(linesOf(it, name).at(-1) ?? "").pid;

describe.skipIf(mongodbMissing)("two gateways and two processes of pet", () => {
  test("share the work, and one that dies is started again while callers go on", { timeout }, async () => {
    await using place = await openPlace();
    const base = await freePorts(2);
    await using it = started({ MONGODB_URI: place.uri, PORT_BASE: `${base}` });
    await it.printed(/is ready/);
    expect(it.output()).toMatch(new RegExp(`^  API +http://127\\.0\\.0\\.1:${base} .*\\(2 processes\\)$`, "m"));
    expect(it.output()).toMatch(new RegExp(`^  pet-1 +http://127\\.0\\.0\\.1:${base + 1} `, "m"));
    expect(it.output()).toMatch(new RegExp(`^  pet-2 +http://127\\.0\\.0\\.1:${base + 6} `, "m"));

    const url = `http://127.0.0.1:${base}`;
    /** On a connection of its own, which may go to either gateway. Undefined when the connection broke. */
    const status = async (path: string, init: RequestInit = {}, more = {}) => {
      const headers = { "content-type": "application/json", connection: "close", ...more };
      const response = await fetch(url + path, { ...init, headers }).catch(() => undefined);
      await response?.arrayBuffer();
      return response?.status;
    };
    /** Becomes the answer to a create, which is sent again where a service was too slow to answer another. */
    const post = (path: string, body: object) =>
      expect.poll(() => status(path, { method: "POST", body: JSON.stringify(body) }, { "idempotency-key": path }));
    await post("/categories", { name: "dogs" }).toBe(201);
    await post("/pets", { name: "Rex", categoryId: 1 }).toBe(201);

    const answers: (number | undefined)[] = [];
    /** Reads until each of these has logged a call once more. */
    const until = async (...names: string[]) => {
      const isServing = (line: string) => /PetService\/GetPet"|"path":"\/pets\/1"/.test(line);
      const count = (name: string) => linesOf(it, name).filter(isServing).length;
      const before = names.map(count);
      while (!names.every((name, i) => count(name) > (before[i] ?? 0))) answers.push(await status("/pets/1"));
    };
    await until("gateway-1", "gateway-2", "pet-1", "pet-2");
    expect(new Set(answers)).toEqual(new Set([200]));
    // A gateway that asks a process for the first time may take it for missing, once, on a machine that is busy.
    const readiness = () =>
      fetch(`${url}/readyz`, { headers: { connection: "close" } }).then((answer) => answer.text());
    await expect.poll(readiness, { timeout: 20_000 }).toContain('"failing":[]');

    process.kill(pidOf(it, "pet-2"), "SIGKILL");
    await it.printed(/^pet-2 ended \(SIGKILL\); starting it again/m);
    await until("gateway-1", "gateway-2", "pet-1");
    await it.printed(new RegExp(`^pet-2 is back at http://127\\.0\\.0\\.1:${base + 6}$`, "m"));
    await until("pet-2");
    expect(new Set(answers)).toEqual(new Set([200]));

    process.kill(pidOf(it, "gateway-2"), "SIGKILL");
    await it.printed(/^gateway-2 ended \(SIGKILL\); starting it again/m);
    answers.length = 0;
    await until("gateway-1", "pet-1", "pet-2");
    expect(new Set(answers)).toEqual(new Set([200]));
    await it.printed(/^gateway-2 is back at/m);
    await until("gateway-2");

    // The port is the launcher's: even without any gateway, connections wait there for the next one.
    const ends = () => it.output().match(/^gateway-\d ended \(SIGKILL\)/gm)?.length ?? 0;
    const before = ends();
    for (const name of ["gateway-1", "gateway-2"]) process.kill(pidOf(it, name), "SIGKILL");
    const asked = status("/pets/1");
    expect(await asked).toBe(200);
    expect(ends()).toBe(before + 2);
    for (const name of ["gateway-1", "gateway-2"])
      await it.printed(new RegExp(`^${name} ended[^]*^${name} is back at`, "m"));

    it.process.kill("SIGTERM");
    expect(await it.ended).toBe(0);
  });
});

test("a port that gateways share is not shared with another petstore", { timeout }, async () => {
  await using other = createServer();
  const port = await listen(other, { host: "127.0.0.1", port: 0 });
  await using it = started({ MONGODB_URI: "mongodb://127.0.0.1:1/", PORT_BASE: `${port}` });
  await it.printed(/can't start|waiting for/);
  expect(it.output()).toContain(`can't start. Can't listen on 127.0.0.1:${port}: port ${port} is taken`);
  expect(await it.ended).toBe(1);
});
