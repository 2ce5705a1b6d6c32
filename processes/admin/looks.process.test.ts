/** What the admin ports of a petstore show of it, as `npm start` runs it: in five processes and in one. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Run, run } from "../../packages/runtime/fixtures/run.ts";
import { freePorts } from "../../test/harness/instances.ts";

const timeout = 240_000;

describe.each([
  ["five processes", [], 5],
  ["one process", ["--single-process"], 1],
] as const)("%s", (_, args, processes) => {
  const stack = new AsyncDisposableStack();
  let base: number;
  let it: Run;
  beforeAll(async () => {
    const dir = await mkdtemp(join(tmpdir(), "looks-"));
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    base = await freePorts();
    const env = { PORT_BASE: `${base}`, DATA_DIR: dir, LAME_DUCK: "0s", PATH: process.env.PATH ?? "" };
    it = stack.use(run(["launcher/main.ts", ...args], env));
    await it.printed(/is ready/);
  }, timeout);
  afterAll(() => stack.disposeAsync(), timeout);

  const admins = () => Array.from({ length: processes }, (_, i) => `http://127.0.0.1:${base + 100 + i}`);
  const get = async (url: string) => (await fetch(url)).json();

  test("the settings in force, where each came from, and no secret", async () => {
    const all = await Promise.all(admins().map((url) => get(`${url}/settings`)));
    for (const settings of all)
      expect(settings).toMatchObject({
        PORT_BASE: { value: base, from: "environment" },
        LOG_LEVEL: { value: "info", from: "default" },
        INTERNAL_SECRET: { value: "[secret]", from: "launcher" },
        MAX_CONNECTIONS: { value: 1000, from: "default" },
      });
    expect(all[0]).toMatchObject({ LAME_DUCK: { value: 0, from: "environment" } });
    expect(all.at(-1)).toMatchObject({ DATA_DIR: { from: "environment" }, EVENTS_RETENTION: { value: null } });
  });

  test("for a while the log says more, also what a request logs", { timeout }, async () => {
    const unknown = () => fetch(`http://127.0.0.1:${base}/nowhere`);
    await unknown();
    expect(it.output()).not.toContain("ROUTE_NOT_FOUND");
    const [gateway] = admins();
    const sayMore = async (time: string) => {
      const level = { method: "PUT", body: JSON.stringify({ level: "debug", for: time }) };
      expect(await (await fetch(`${gateway}/log-level`, level)).json()).toMatchObject({
        level: "debug",
        usual: "info",
      });
    };
    await sayMore("1h");
    await unknown();
    await it.printed(/ROUTE_NOT_FOUND/);
    await sayMore("1s");
    await expect.poll(() => get(`${gateway}/log-level`)).toEqual({ level: "info", usual: "info" });
  });

  test("profiles", { timeout }, async () => {
    for (const url of admins()) {
      expect(await get(`${url}/profile/cpu?seconds=1`)).toMatchObject({ nodes: expect.any(Array) });
      expect(await get(`${url}/profile/heap?seconds=1`)).toMatchObject({ head: expect.any(Object) });
    }
  });
});
