import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { shareQueries } from "./shared-queries.ts";

test("those who ask the same in one tick share a query, and how it fails; the next one is sent anew", async () => {
  const sent: string[] = [];
  const share = shareQueries(
    async (asked: string) => {
      sent.push(asked);
      await tick();
      if (sent.length === 1) throw new Error("it is gone");
      return { asked };
    },
    (asked) => asked,
  );
  const ask = () => Promise.allSettled(["a", "a", "a"].map(share));
  expect((await ask()).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const [first, ...others] = await ask();
  expect(first).toEqual({ status: "fulfilled", value: { asked: "a" } });
  expect(others).toEqual([first, first]);
  await Promise.all([share("a"), share("b")]);
  expect(sent.toSorted()).toEqual(["a", "a", "a", "b"]);
});
