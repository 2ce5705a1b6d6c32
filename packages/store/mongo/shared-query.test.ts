import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { shareQuery } from "./shared-query.ts";

test("those who ask in one tick share a query, and how it fails; the next one is sent anew", async () => {
  let sent = 0;
  const share = shareQuery(async () => {
    const number = ++sent;
    await tick();
    if (number === 1) throw new Error("it is gone");
    return { number };
  });
  const ask = () => Promise.allSettled([share(), share(), share()]);
  expect((await ask()).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const [first, ...others] = await ask();
  expect(first).toEqual({ status: "fulfilled", value: { number: 2 } });
  expect(others).toEqual([first, first]);
});

test("nobody joins a query that was sent", async () => {
  const answers: (() => void)[] = [];
  const share = shareQuery(async () => {
    const number = answers.length + 1;
    await new Promise<void>((resolve) => answers.push(resolve));
    return number;
  });
  const first = share();
  while (answers.length === 0) await tick();
  const later = share();
  answers[0]?.();
  expect(await first).toBe(1);
  while (answers.length === 1) await tick();
  answers[1]?.();
  expect(await later).toBe(2);
});
