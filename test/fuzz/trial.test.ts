/** What a case has changed is blamed on it and on no other, and is seen again when the case is tried again. */
import { expect, test } from "vitest";
import type { Subject } from "./subject.ts";
import type { RemoteTarget, Sent } from "./target.ts";
import { createTrials } from "./trial.ts";

const PROBLEM = "what was refused has changed something";

/**
 * A petstore that has one name, and takes the processor for so many seconds each time that it is sent something. What is done
 * late is done behind the next read.
 */
function petstore(...costs: number[]) {
  const store = { name: "", seconds: 0, late: () => {} };
  const neighbour = {
    async state() {
      const { name } = store;
      store.late();
      return name;
    },
    async ask() {
      store.seconds += costs.shift() ?? 0;
    },
    async renew() {
      store.name = "renewed";
    },
  };
  const subject = { cpu: () => 1e9 * store.seconds, look: async () => {}, neighbour } as unknown as Subject;
  return { store, trials: createTrials(subject) };
}

/** A case is what it does to the petstore. */
const target = { name: "any", send: async (one: () => Sent) => one() } as unknown as RemoteTarget<() => Sent>;
const done: Sent = { to: "gateway", bytes: 0, isAnswered: true, isRefused: false, writes: true };
const refused: Sent = { ...done, isRefused: true };

test("a change that can be made only once is seen again", async () => {
  const { store, trials } = petstore();
  const rename = () => {
    store.name = "Rex";
    return refused;
  };
  expect((await trials.try(target, rename))?.problem).toBe(PROBLEM);
  expect(await trials.repeat(target, rename, PROBLEM)).toBeDefined();
});

test("what is refused at first, and done when it is sent again for what it cost, is not blamed on the next one", async () => {
  const { store, trials } = petstore(10);
  let times = 0;
  const renameLater = () => {
    if (++times === 1) return refused;
    store.name = "Rex";
    return done;
  };
  expect(await trials.try(target, renameLater)).toBeUndefined();
  expect(store.name).toBe("Rex");
  expect(await trials.try(target, () => refused)).toBeUndefined();
});

test("what is answered at first, and not when it is sent again for what it cost, is waited for", async () => {
  const { store, trials } = petstore(10);
  let times = 0;
  const renameLate = (): Sent => {
    if (++times === 1) return done;
    store.late = () => {
      store.name = "Rex";
    };
    return { ...done, isAnswered: false };
  };
  expect(await trials.try(target, renameLate)).toBeUndefined();
  expect(await trials.try(target, () => refused)).toBeUndefined();
});
