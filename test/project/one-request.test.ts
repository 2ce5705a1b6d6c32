/** Through which of our files one request passes, and whether docs/architecture.md tells it as it is. */
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LAUNCHED } from "@petstore/runtime/lifecycle";
import { beforeAll, expect, test } from "vitest";
import { run } from "../../packages/runtime/fixtures/run.ts";
import { freePorts } from "../harness/instances.ts";

const ROOT = join(import.meta.dirname, "../..");
const ORDERS = 30;

/**
 * Counts calls when asked to "count", up to "pause", and in the pause up to "tell", which lasts as long. Then it answers with
 * the files of which a function was called for each order: so often that it was not by timers, which run in the pause, too.
 */
const COUNT = `import { Session } from "node:inspector";
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  const take = (use) => session.post("Profiler.takePreciseCoverage", (_, { result }) => {
    const functions = result.flatMap(({ url, functions }) => functions.map(({ ranges: [all] }) => ({ url, ...all })));
    use(functions.map(({ url, startOffset, endOffset, count }) => ({ url, key: [url, startOffset, endOffset].join(), count })));
  });
  let counted;
  process.on("message", ({ type }) => {
    const reply = (files) => process.send({ type, files });
    if (type === "count") session.post("Profiler.startPreciseCoverage", { callCount: true }, () => reply());
    if (type === "pause") take((functions) => {
      counted = functions;
      reply();
    });
    if (type === "tell") take((functions) => {
      const paused = new Map(functions.map(({ key, count }) => [key, count]));
      const called = counted.filter(({ key, count }) => count - 2 * (paused.get(key) ?? 0) >= ${ORDERS});
      reply([...new Set(called.map(({ url }) => url))]);
    });
  });`;

let files: string[] = [];

beforeAll(async () => {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "one-request-"));
  stack.defer(() => rm(dir, { recursive: true }));
  const script = `data:text/javascript,${encodeURIComponent(COUNT)}`;
  const args = ["--import", script, join(ROOT, "launcher/main.ts"), "--single-process"];
  const env = { DATA_DIR: dir, PORT_BASE: `${await freePorts()}`, [LAUNCHED]: "1" };
  const { process: child, ended, output } = stack.use(run(args, env, true));
  const early = ended.then(() => {
    throw new Error(output());
  });
  const told = async (type: string): Promise<{ url: string; files: string[] }> => {
    for (;;) {
      const [message] = await Promise.race([once(child, "message"), early]);
      if (message.type === type) return message;
    }
  };
  const { url } = await told("ready");
  const create = async (path: string, body: object) => {
    const answer = await fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(201);
  };
  await create("/categories", { name: "dogs" });
  for (let id = 1; id <= ORDERS; id++) await create("/pets", { name: "Rex", categoryId: 1 });
  child.send({ type: "count" });
  await told("count");
  const begin = performance.now();
  for (let petId = 1; petId <= ORDERS; petId++) await create("/store/orders", { petId });
  child.send({ type: "pause" });
  await told("pause");
  await sleep(performance.now() - begin);
  child.send({ type: "tell" });
  const urls = (await told("tell")).files.filter((url) => url.startsWith(`file://${ROOT}/`));
  files = urls.map((url) => url.slice(`file://${ROOT}/`.length)).filter((path) => !path.startsWith("node_modules/"));
}, 300_000);

test("an order passes no more of our files than can be read in one go", () => {
  expect(files.length, `${files.toSorted().join("\n")}\n${files.length} files`).toBeLessThanOrEqual(85);
});

test("what the page says of its way downwards is where it passes", async () => {
  const page = await readFile(join(ROOT, "docs/architecture.md"), "utf8");
  const [, table = ""] = /^## One request, downwards\n(.*?)\n\n[^|\n]/ms.exec(page) ?? [];
  // Between processes only.
  const between = /^packages\/rpc\/(client|link)\//;
  const named = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+\.ts)`/g)].map(([, path = ""]) => path),
  );
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((path) => path.includes("/") && !between.test(path) && !files.includes(path))).toEqual([]);
});
