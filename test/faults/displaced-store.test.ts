/** The files of the embedded store are moved or removed while the petstore runs: nothing is acknowledged that a restart would not find. */
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Run, run } from "../../packages/runtime/fixtures/run.ts";
import { freePorts } from "../harness/instances.ts";

const timeout = 120_000;
const script = join(import.meta.dirname, "../../launcher/main.ts");

async function start(data: string) {
  const base = await freePorts();
  const petstore = run([script], { DATA_DIR: data, PORT_BASE: `${base}`, LOG_LEVEL: "warn" });
  await petstore.printed(/is ready/);
  const url = `http://127.0.0.1:${base}/categories`;
  /** The status; undefined when nobody answers any more. */
  const create = (name: string) =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", connection: "close" },
      body: JSON.stringify({ name }),
    }).then(
      ({ status }) => status,
      () => undefined,
    );
  const names = async () => ((await (await fetch(url)).json()) as { name: string }[]).map(({ name }) => name);
  return { petstore, create, names };
}

async function expectEnd(petstore: Run, lost: string): Promise<void> {
  expect(await petstore.ended).toBe(78);
  const lines = petstore.output().split("\n");
  expect(lines.filter((line) => /^The petstore ends\. \w+ can't go on, and its log says why$/.test(line))).toHaveLength(
    1,
  );
  const [fatal = ""] = lines.filter((line) => line.includes('"level":"fatal"'));
  expect(JSON.parse(fatal).msg).toMatch(new RegExp(`^${lost}.* was moved, removed or replaced while the petstore ran`));
}

const newDirectory = () => {
  const dir = mkdtempSync(join(tmpdir(), "displaced-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
};

test("a directory that is removed: no more writes, and no restart on an empty one", { timeout }, async () => {
  const data = join(newDirectory(), "data");
  const { petstore, create } = await start(data);
  await using _ = petstore;
  expect(await create("before")).toBe(201);
  rmSync(data, { recursive: true });
  expect([503, undefined]).toContain(await create("after"));
  await expectEnd(petstore, data);
  expect(existsSync(data)).toBe(false);
});

test("one file of the four: the next start refuses the rest", { timeout }, async () => {
  const data = join(newDirectory(), "data");
  const { petstore } = await start(data);
  await using _ = petstore;
  rmSync(join(data, "order.db"));
  await expectEnd(petstore, join(data, "order.db"));
  await using again = run([script], { DATA_DIR: data, PORT_BASE: `${await freePorts()}` });
  expect(await again.ended).toBe(1);
  expect(again.output()).toMatch(/can't start\. order: .*order\.db is gone/);
});

test("a directory that is moved has all that was acknowledged", { timeout }, async () => {
  const dir = newDirectory();
  const { petstore, create } = await start(join(dir, "data"));
  await using _ = petstore;
  const acknowledged: string[] = [];
  const writing = (async () => {
    for (let i = 0; ; i++) {
      const status = await create(`${i}`);
      if (status === undefined) return;
      if (status === 201) acknowledged.push(`${i}`);
      if (i === 20) renameSync(join(dir, "data"), join(dir, "data2"));
    }
  })();
  await expectEnd(petstore, join(dir, "data"));
  await writing;
  expect(acknowledged.length).toBeGreaterThanOrEqual(20);

  const again = await start(join(dir, "data2"));
  await using __ = again.petstore;
  expect(new Set(await again.names()).isSupersetOf(new Set(acknowledged))).toBe(true);
});
