import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { realTime } from "./clock.ts";
import { problemOf, watchFiles } from "./watched-files.ts";

const quiet = {
  name: "files",
  parse: (texts: readonly string[]) => texts,
  describe: () => ({}),
  said: { again: "", unusable: "" },
  log: pino({ level: "silent" }),
  ...realTime,
};

test("of several files that can't be read the first is named, each time", async () => {
  const directory = await mkdtemp(join(tmpdir(), "watched-files-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  // Read together, one time in five or ten the second fails first: that a directory is no file takes a little longer to see.
  const paths = [directory, join(directory, "missing")];
  for (let i = 0; i < 200; i++) {
    const problem = await watchFiles(paths, quiet).catch((error) => problemOf(error, paths));
    expect(problem).toBe("the first: EISDIR");
  }
});

test("files that are replaced one after the other are no problem, one that stays is logged once", async () => {
  const directory = await mkdtemp(join(tmpdir(), "watched-files-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const paths = ["key", "certificate"].map((name) => join(directory, name)) as [string, string];
  for (const path of paths) await writeFile(path, "1");
  const lines: { level: number; problem?: string }[] = [];
  const hasLooked = Promise.withResolvers<void>();
  await using files = await watchFiles(paths, {
    ...quiet,
    parse([key, certificate]) {
      if (key !== certificate) throw new Error(`${key} is not the key of ${certificate}`);
      return key;
    },
    log: pino({}, { write: (line: string) => lines.push(JSON.parse(line)) }),
    sleep(_, signal) {
      hasLooked.resolve();
      return new Promise((resolve) => signal?.addEventListener("abort", () => resolve()));
    },
  });
  await hasLooked.promise;
  await writeFile(paths[0], "2");
  await files.reload();
  expect(files.current()).toBe("1");
  await writeFile(paths[1], "2");
  await files.reload();
  expect(files.current()).toBe("2");
  expect(lines.map(({ level }) => level)).toEqual([30]);
  await writeFile(paths[0], "3");
  for (let look = 0; look < 3; look++) await files.reload();
  expect(lines.slice(1)).toMatchObject([{ level: 50, problem: "3 is not the key of 2" }]);
});

const key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----\n";
test.each([
  ["as it is", key, "looks like what belongs into one"],
  ["on one line", key.replaceAll("\n", "\\n"), "looks like what belongs into one"],
  ["with spaces", key.replaceAll("\n", " "), "looks like what belongs into one"],
  ["in base64", Buffer.from(key).toString("base64"), "there is no such file"],
  ["in base64, a long one", Buffer.from(key.repeat(4)).toString("base64"), "looks like what belongs into one"],
])("a private key in place of its path is not repeated: %s", async (_, path, words) => {
  const paths = [import.meta.filename, path];
  const problem = await watchFiles(paths, quiet).catch((error) => problemOf(error, paths));
  expect(problem).toMatch(/^the second: /);
  expect(problem).toContain(words);
  expect(problem).not.toContain(path.slice(0, 10));
});
