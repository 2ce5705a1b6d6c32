import { serialize as serialized } from "bson";
import { describe, expect, test } from "vitest";
import type { ShownChange } from "../document/fold.ts";
import { Corrupt, type Doc } from "../port.ts";
import { type Operation, outcome, readStored, type Stored, toldBy, toStored, unchanged } from "./operation-log.ts";

const change = (by: string, number: number): Operation => ({ by, number });

/** The document after these changes, one after the other. */
function documentOf(...changes: Operation[]): Stored {
  let stored: Stored | undefined;
  for (const [i, made] of changes.entries()) {
    stored = readStored(serialized(toStored({ _id: 1, rev: i + 1 }, stored, made)), { name: "pets" });
  }
  return stored as Stored;
}
const others = (count: number) => Array.from({ length: count }, (_, i) => change(`p${i}`, 1));

describe("an entry", () => {
  test("is not a part of the document", () => {
    const stored = readStored(serialized(toStored({ _id: 1, rev: 1, ...{ name: "Rex" } }, undefined, change("a", 7))), {
      name: "pets",
    });
    expect(stored).toEqual({ doc: { _id: 1, rev: 1, name: "Rex" }, operations: [{ by: "a", number: 7, rev: 1 }] });
  });
  test("stands for the last change of its process; the newest comes first", () => {
    const { operations } = documentOf(change("a", 1), change("b", 1), change("a", 2));
    expect(operations).toEqual([
      { by: "a", number: 2, rev: 3 },
      { by: "b", number: 1, rev: 2 },
    ]);
  });
  test("of the last 16 processes is kept", () => {
    expect(documentOf(...others(20)).operations.map(({ by }) => by)).toEqual(
      others(20)
        .slice(4)
        .map(({ by }) => by)
        .reverse(),
    );
  });
  test("tells a document from one that came back at the same revision", () => {
    expect(unchanged(documentOf(change("a", 1)))).not.toEqual(unchanged(documentOf(change("a", 2))));
  });
});

describe("a document that this engine can't have written is Corrupt", () => {
  test.each([
    { _id: 1, rev: 1 },
    { _id: 1, _operations: [] },
    { _id: 1, rev: "1", _operations: [] },
    { _id: 1, rev: 1, _operations: {} },
  ])("%j", (fields) => expect(() => readStored(serialized(fields), { name: "pets" })).toThrow(Corrupt));
});

describe("the outcome of a change", () => {
  const ours = change("us", 2);
  const base = documentOf(change("us", 1));

  test("is made when its entry is there, however many came after", () => {
    expect(outcome(ours, base, documentOf(change("us", 1), ours))).toBe("made");
    expect(outcome(ours, base, documentOf(change("us", 1), ours, ...others(15)))).toBe("made");
    expect(outcome(ours, undefined, documentOf(ours))).toBe("made");
  });
  test("is not made when there is no room in which its entry could be missing", () => {
    expect(outcome(ours, base, base)).toBe("not made");
    expect(outcome(ours, base, documentOf(change("us", 1), ...others(15)))).toBe("not made");
    expect(outcome(ours, undefined, undefined)).toBe("not made");
    expect(outcome(ours, undefined, documentOf(change("a", 1)))).toBe("not made");
    // Sixteen processes, yet the oldest of the entries is older than the change.
    const full = documentOf(...others(16));
    expect(outcome(ours, full, full)).toBe("not made");
  });
  test("is unknown when sixteen others may have pushed its entry out, or the document is gone", () => {
    expect(outcome(ours, base, documentOf(change("us", 1), ours, ...others(16)))).toBe("unknown");
    expect(outcome(ours, base, documentOf(change("us", 1), ...others(16)))).toBe("unknown");
    expect(outcome(ours, base, undefined)).toBe("unknown");
    expect(outcome(ours, documentOf(change("us", 1), change("a", 1)), documentOf(change("b", 1)))).toBe("unknown");
  });
});

test("what a change tells is in its own entry alone, and what was shown only when nothing is any more", () => {
  const shownOf = (doc: Doc) => ("name" in doc ? { name: doc.name } : undefined);
  const write = (by: string, before: Stored | undefined, news: ShownChange | undefined, fields: object) => {
    const doc = { _id: 1, rev: (before?.doc.rev ?? 0) + 1, ...fields };
    return readStored(serialized(toStored(doc, before, { by, number: 1 }, news)), { name: "pets" });
  };
  const rex = { name: "Rex" };
  const created = write("a", undefined, { type: "created", shown: rex }, rex);
  expect(toldBy(created, shownOf)).toEqual({ type: "created", shown: rex });
  expect(created.operations).toEqual([{ by: "a", number: 1, rev: 1, told: { type: "created" } }]);
  const updated = write("a", created, { type: "updated", shown: rex, former: { kind: "dog" } }, rex);
  expect(toldBy(updated, shownOf)).toEqual({ type: "updated", shown: rex, former: { kind: "dog" } });
  const silent = write("b", created, undefined, rex);
  expect(toldBy(silent, shownOf)).toBeUndefined();
  expect(silent.operations.map((entry) => "told" in entry)).toEqual([false, false]);
  const deleted = write("c", silent, { type: "deleted", shown: rex }, {});
  expect(toldBy(deleted, shownOf)).toEqual({ type: "deleted", shown: rex });
});
