import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ChildDied, supervise } from "./supervisor.ts";

const script = join(import.meta.dirname, "../packages/runtime/fixtures/child.ts");

function supervised(behaviour: string, backoff = { firstMs: 10, longestMs: 40 }, pingMs?: number) {
  const said: string[] = [];
  let told = Promise.withResolvers<void>();
  const say = (line: string) => {
    said.push(line);
    told.resolve();
    told = Promise.withResolvers();
  };
  const child = supervise(
    { name: "quiet", kind: "quiet", args: [script, "quiet", behaviour] },
    { environment: {}, say, giveUp: say, backoff, ...(pingMs && { pingMs }) },
  );
  onTestFinished(async () => {
    child.kill();
    await child.stop();
  });
  /** Resolves when so many lines were said. */
  const lines = async (count: number) => {
    while (said.length < count) await told.promise;
    return said.slice(0, count);
  };
  return { child, said, lines };
}

test("a child that dies at start says why, and is not restarted", async () => {
  const { child, said } = supervised("refuse");
  await expect(child.ready).rejects.toThrow(new ChildDied("quiet: the cellar is flooded"));
  await child.stop();
  expect(said).toEqual([]);
});

test("a child that can't even be made ends a start in words, and not this process", async () => {
  const child = supervise(
    { name: "quiet", kind: "quiet", args: [script], environment: { BROKEN: "a\0b" } },
    { environment: {}, say: () => {}, giveUp: () => {} },
  );
  await expect(child.ready).rejects.toThrow(/^quiet: .*null bytes/);
  await child.stop();
});

test("the backoff grows up to a limit while a child keeps crashing", async () => {
  const { child, lines } = supervised("throw"); // is ready, then crashes
  expect(await child.ready).toBe("http://127.0.0.1/quiet");
  const pauses = (await lines(9)).filter((line) => line.includes("ended"));
  expect(pauses).toEqual(
    [10, 20, 40, 40, 40].map((ms) => `quiet ended (exit code 1); starting it again in ${ms / 1000} s`),
  );
});

test("a child that says that a restart would not help is not started again", async () => {
  const { child, lines } = supervised("give-up");
  await child.ready;
  expect(await lines(1)).toEqual(["quiet can't go on, and its log says why"]);
  await child.stop();
  expect(await lines(0)).toEqual([]);
});

test("a stop does not wait for the backoff to end", async () => {
  const long = 2 ** 30;
  const { child, lines } = supervised("throw", { firstMs: long, longestMs: long });
  await lines(1);
  await child.stop();
});

test("a child whose event loop no longer turns is ended and started again", async () => {
  const { child, lines } = supervised("spin", { firstMs: 10, longestMs: 10 }, 30);
  await child.ready;
  expect((await lines(3)).filter((line) => !line.includes("back"))).toEqual(
    Array(2).fill("quiet ended (it has not answered for 0.3 s and was killed); starting it again in 0.01 s"),
  );
});

test("nobody is ended for a time in which this process itself did not run, as in a machine that was suspended", async () => {
  const { child, said } = supervised("well", undefined, 300);
  await child.ready;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_000);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(said).toEqual([]);
});
