import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "./fixtures/run.ts";

test("what was compiled for the start goes with its garbage, and what is compiled later stays", async () => {
  await using child = run([join(import.meta.dirname, "fixtures/collect-child.ts")]);
  const [line] = await child.printed(/at start.*/);
  expect(line).toBe("at start true, after it false, later true");
});
