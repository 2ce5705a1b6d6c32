import { describe, expect, test } from "vitest";
import { claim, fence, free, isFenced, type KeyDoc, replace } from "./key-transitions.ts";

const HOUR = 500_000;
const attempt = { key: "k", fingerprint: "f", params: { name: "Rex" }, seenEpoch: undefined };
const common = { _id: "k", rev: 1, fingerprint: "other", params: {}, fencingEpoch: 5, hour: 1 };
const states: Record<string, KeyDoc | undefined> = {
  "without a document": undefined,
  FREE: common,
  "CLAIMED by 7": { ...common, recordId: 7 },
  "CLAIMED by 8": { ...common, recordId: 8 },
};
const claimed = { recordId: 9, fingerprint: "f", params: attempt.params, hour: HOUR };

describe.each([
  { name: "claim at epoch 0", rule: claim(attempt, 9, 0, HOUR), ends: { "without a document": claimed } },
  { name: "claim at epoch 5", rule: claim(attempt, 9, 5, HOUR), ends: { FREE: { ...claimed, fencingEpoch: 5 } } },
  { name: "claim at epoch 4, in a race with a refusal", rule: claim(attempt, 9, 4, HOUR), ends: {} },
  {
    name: "replace 7",
    rule: replace(attempt, 7, 9, HOUR),
    ends: { "CLAIMED by 7": { ...claimed, fencingEpoch: 7 } },
  },
  { name: "replace 7 at epoch 4, in a race with a refusal", rule: replace(attempt, 7, 9, HOUR, 4), ends: {} },
  {
    name: "free after the refusal of 7",
    rule: free(attempt, 7, 9, HOUR),
    ends: {
      "without a document": { recordId: undefined, fencingEpoch: 9, hour: HOUR },
      FREE: { recordId: undefined, fencingEpoch: 9, hour: HOUR },
      "CLAIMED by 7": { recordId: undefined, fencingEpoch: 9, hour: HOUR },
    },
  },
  {
    name: "fence",
    rule: fence(9, HOUR),
    ends: {
      FREE: { fencingEpoch: 9, fingerprint: "other", hour: HOUR },
      "CLAIMED by 7": { recordId: 7, fencingEpoch: 9, fingerprint: "other", hour: HOUR },
      "CLAIMED by 8": { recordId: 8, fencingEpoch: 9, fingerprint: "other", hour: HOUR },
    },
  },
])("$name", ({ rule, ends }) => {
  test.each(Object.keys(states))("of a key %s", (state) => {
    const end = (ends as Record<string, object>)[state];
    const expected = end
      ? { action: "put", result: true, doc: { _id: "k", ...end } }
      : { action: "keep", result: false };
    expect(rule(states[state], 2)).toMatchObject(expected);
  });
});

test("the fencing epoch never falls", () => {
  expect(free(attempt, 7, 4, HOUR)(common, 2)).toMatchObject({ doc: { fencingEpoch: 5 } });
  expect(fence(4, HOUR)(common, 2)).toMatchObject({ doc: { fencingEpoch: 5 } });
  expect(replace(attempt, 3, 9, HOUR)({ ...common, recordId: 3 }, 2)).toMatchObject({ doc: { fencingEpoch: 5 } });
});

test("an attempt is fenced by the epoch that it has seen, or by its id when it has seen none", () => {
  const seen = (seenEpoch: number | undefined) => isFenced({ ...attempt, seenEpoch }, 5, 6);
  expect([0, 4, 5, 6, undefined].map(seen)).toEqual([true, true, false, false, false]);
  expect([4, 5, 6].map((id) => isFenced(attempt, 5, id))).toEqual([true, true, false]);
});
