/** `npm run simulate`, as it is run. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { copyTree } from "../mutants/copied-tree.ts";
import { guards } from "../mutants/guards.ts";

// Some thousand histories, and all that the machine does beside them.
const timeout = 600_000;

async function simulate(args: readonly string[], cwd = ".") {
  const child = spawn(process.execPath, ["test/simulation/main.ts", ...args], { cwd });
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  const [code] = await once(child, "exit");
  return { code, stdout: await stdout, stderr: await stderr };
}

test("says what its runs came to, and that few runs come to little", { timeout }, async () => {
  const { code, stdout } = await simulate(["--runs", "2", "--seed", "7"]);
  expect(stdout).toMatch(/^seed 7: 2 runs in \d+ s, \d+ a second\. Nothing is wrong\.$/m);
  expect(stdout).toMatch(/^ {2}\d+ operations: /m);
  expect(stdout).toMatch(/^Never once: .*jump of time/m);
  expect(code).toBe(1);
  expect(await simulate(["--run", "2", "--seed", "7"])).toMatchObject({ code: 0 });
});

test("finds out that a petstore sells more than it has, and tells how", { timeout }, async () => {
  using tree = copyTree();
  const guard = guards.find(({ guard }) => guard === "no more is sold than there is");
  using _ = guard && tree.without(guard.file, guard);
  const found = await simulate(["--runs", "2000", "--seed", "7"], tree.root);
  expect(found.code).toBe(1);
  const story = found.stdout.split("\n").filter((line) => line !== "");
  expect(story.length).toBeLessThan(20);
  const [, run] = /^Run (\d+) of seed 7 fails/.exec(story[0] ?? "") ?? [];
  expect(story).toContainEqual(expect.stringMatching(/^client \d asks: place order/));
  expect(story).toContainEqual(expect.stringMatching(/^ {2}stored: inventory \d+: quantity -/));
  expect(story.slice(-2)).toEqual([
    expect.stringMatching(/^So: inventory \d+ has less than nothing\.$/),
    `Once more: npm run simulate -- --seed 7 --run ${run}`,
  ]);
  const again = await simulate(["--seed", "7", "--run", run ?? ""], tree.root);
  expect(again.stdout).toBe(found.stdout);
});

describe("what it can't do, it says", () => {
  test.each([
    [["--runs", "none"], "--runs must be a whole number above 0, not none."],
    [["--run", "3"], "--run needs the --seed that it is of."],
    [["--run", "3", "--seed", "7", "--runs", "9"], "--run is one run and --runs are many: give one of them."],
    [["--fast"], "Unknown option '--fast'"],
  ])("%j", async (args, message) => {
    const { code, stderr } = await simulate(args);
    expect(stderr).toContain(message);
    expect(code).toBe(1);
  });
});
