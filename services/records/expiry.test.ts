import { expect, test } from "vitest";
import { expiryWorker } from "./expiry.ts";

test("what has expired is removed until there is no more of it", async () => {
  let expired = 250;
  const remove = async (limit: number) => {
    const batch = Math.min(limit, expired);
    expired -= batch;
    return batch;
  };
  expect(await expiryWorker("test", remove, { clock: () => 0, random: () => 0 }).run(100)).toBe(250);
});
