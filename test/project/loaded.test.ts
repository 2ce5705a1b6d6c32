/** What a start does not load. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startPetstore } from "../harness/petstore.ts";

test("nobody loads what only MongoDB, a terminal or credentials need", { timeout: 120_000 }, async () => {
  const coverage = await mkdtemp(join(tmpdir(), "loaded-"));
  onTestFinished(() => rm(coverage, { recursive: true }));
  const dataDir = await mkdtemp(join(tmpdir(), "petstore-"));
  // A list of all that was loaded is a part of what V8 knows about coverage.
  const petstore = await startPetstore({ dataDir, env: { NODE_V8_COVERAGE: coverage } });
  await petstore.stop();
  const reports = await Promise.all((await readdir(coverage)).map((file) => readFile(join(coverage, file), "utf8")));
  const loaded = reports.map((text) =>
    (JSON.parse(text) as { result: { url: string }[] }).result.map(({ url }) => url),
  );
  expect(loaded).toHaveLength(5);
  expect(loaded.flat().filter((url) => url.includes("/sqlite/sqlite.ts"))).toHaveLength(4);
  expect(
    loaded.flat().filter((url) => /node_modules\/(mongodb|pino-pretty|jose)\/|auth\/(api-keys|tokens)\.ts/.test(url)),
  ).toEqual([]);
});
