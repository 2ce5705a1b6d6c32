/** Every case that a fuzz run has ever found, and some of old: each is tried again, and none does what it once did. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { savedCases } from "./corpus.ts";
import { type Subject, startSubject } from "./subject.ts";
import { targets } from "./targets.ts";
import { createTrials, type Trials } from "./trial.ts";

let subject: Subject;
let trials: Trials;
beforeAll(async () => {
  subject = await startSubject();
  trials = createTrials(subject);
});
afterAll(() => subject?.[Symbol.asyncDispose]());

describe.each(targets.map((target) => [target.name, target] as const))("%s", (name, target) => {
  const cases = savedCases().filter((one) => one.target === name);
  test("there are cases", () => expect(cases.length).toBeGreaterThan(0));
  test.each(cases)("$name", async (one) => {
    expect(await trials.try(target, one.case)).toBeUndefined();
  });
});
