import { mkdtemp, rm } from "node:fs/promises";
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
    expect(problem).toBe(`${directory}: EISDIR`);
  }
});
