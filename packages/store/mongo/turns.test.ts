import { expect, test } from "vitest";
import { createTurns } from "./turns.ts";

const never = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Works that end when they are told to, and which of them have begun. */
function works(inTurn: ReturnType<typeof createTurns>) {
  const begun: string[] = [];
  const begin = (name: string, signal = never) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const ended = inTurn(signal, () => {
      begun.push(name);
      return promise;
    });
    ended.catch(() => {});
    return { ended, end: () => resolve(name), fail: () => reject(new Error(name)) };
  };
  return { begun, begin };
}

test("so many are under way at a time, and the others follow in their order, also after one that fails", async () => {
  const { begun, begin } = works(createTurns(2));
  const [first, second, third] = ["1", "2", "3", "4"].map((name) => begin(name));
  await settled();
  expect(begun).toEqual(["1", "2"]);
  second?.fail();
  await expect(second?.ended).rejects.toThrow("2");
  expect(begun).toEqual(["1", "2", "3"]);
  third?.end();
  await expect(third?.ended).resolves.toBe("3");
  expect(begun).toEqual(["1", "2", "3", "4"]);
  first?.end();
  await expect(first?.ended).resolves.toBe("1");
});

test("who leaves before the turn is never begun, and who leaves after it keeps the turn until its work has ended", async () => {
  const { begun, begin } = works(createTurns(1));
  const leaving = new AbortController();
  const first = begin("first", leaving.signal);
  const second = begin("second", leaving.signal);
  begin("third");
  leaving.abort(new Error("nobody waits"));
  await expect(second.ended).rejects.toThrow("nobody waits");
  await settled();
  expect(begun).toEqual(["first"]);
  first.end();
  await first.ended;
  await settled();
  expect(begun).toEqual(["first", "third"]);
});
