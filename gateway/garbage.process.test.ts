import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../packages/runtime/fixtures/run.ts";

test("of what is made for requests nearly nothing outlives a collection", async () => {
  await using child = run([join(import.meta.dirname, "fixtures/garbage-child.ts")]);
  const [, kept] = await child.printed(/kept (\S+)/);
  // A fifth where one line of code of all makes its objects old, and one in two hundred now.
  expect(Number(kept)).toBeLessThan(0.05);
});
