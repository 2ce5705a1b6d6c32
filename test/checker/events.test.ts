/** The checker of events finds what it is there for: a run that is judged well proves nothing otherwise. */
import { describe, expect, test } from "vitest";
import type { Shown } from "../workload/perform.ts";
import { type Synced, type Told, violationsIn, type Watch, type Write } from "./events.ts";
import { knownHistory } from "./known-history.ts";
import { emptyState, type State } from "./state.ts";

const pet = (id: number, version: number, name = `${version}`): Shown => ({ kind: "pet", id, version, view: { name } });
const shows = (id: number, version: number): Write => ({ kind: "pet", id, shown: pet(id, version) });
const hides = (id: number): Write => ({ kind: "pet", id, shown: undefined });
const event = (type: Told["type"], id: number, version: number, at = Number.POSITIVE_INFINITY): Told => ({
  type,
  id: `pet-${id}-${version}${type === "deleted" ? "-end" : ""}`,
  shown: pet(id, version),
  at,
});
const synced: Synced = { type: "synced", at: Number.POSITIVE_INFINITY };

/** Two pets come, change and go; something that nobody sees is written as well. */
const history: readonly Write[] = [
  hides(1),
  shows(1, 1), // 1
  shows(2, 1),
  shows(1, 2), // 3
  shows(1, 2),
  { kind: "category", id: 1, shown: { kind: "category", id: 1, version: 1, view: { name: "dogs" } } },
  shows(1, 3), // 6
  hides(2),
  shows(3, 1), // 8
  hides(2),
];
const all = [
  event("created", 1, 1),
  event("created", 2, 1),
  event("updated", 1, 2),
  event("updated", 1, 3),
  event("deleted", 2, 1),
  event("created", 3, 1),
];
const watch = (told: Watch["told"], since = 0): Watch => ({ kind: "pet", snapshot: false, since, told });
const wrong = (...told: Watch["told"]) => violationsIn([watch(told)], history);

describe("changes", () => {
  test("that are told each once and in order are right, whatever the order of different records", () => {
    expect(wrong(...all)).toEqual([]);
    expect(wrong(...all.toSorted((a, b) => a.shown.id - b.shown.id))).toEqual([]);
  });

  test("of before the watch may be told, without gaps", () => {
    const [, , ...later] = all;
    expect(violationsIn([watch(later, 3)], history)).toEqual([]);
    expect(violationsIn([watch(later.slice(1), 4)], history)).toEqual([]);
    expect(violationsIn([watch(later, 4)], history)).toEqual([]);
    expect(violationsIn([watch([...all.slice(0, 2), ...all.slice(3)], 4)], history)).toEqual([
      "pet 1 was updated (version 2), untold",
    ]);
  });

  test.each(all.map((left) => [left.type, left.shown, left] as const))(
    "that are missing: %s %o",
    (type, shown, left) => {
      expect(wrong(...all.filter((one) => one !== left))).toEqual([
        `pet ${shown.id} was ${type} (version ${shown.version}), untold`,
      ]);
    },
  );

  test("that are told again", () => {
    const [again] = all.slice(3) as [Told];
    expect(wrong(...all, again)).toEqual(["pet 1 version 3 was told as updated twice"]);
    expect(wrong(...all, ...all.slice(2, 4))).toEqual([
      "pet 1 version 2 was told as updated twice",
      "pet 1 version 3 was told as updated twice",
    ]);
  });

  test("in another order", () => {
    const [a, b, c, d, ...rest] = all as [Told, Told, Told, Told, ...Told[]];
    expect(wrong(a, b, d, c, ...rest)).toEqual(["pet 1 version 2 was told as updated after a later change"]);
  });

  test("that never were", () => {
    expect(wrong(...all, event("updated", 3, 2))).toEqual(["pet 3 version 2 was told as updated, and never was so"]);
    expect(wrong(...all, event("created", 9, 1))).toEqual(["pet 9 version 1 was told as created, and never was so"]);
    expect(wrong(...all, event("deleted", 3, 1))).toEqual(["pet 3 version 1 was told as deleted, and never was so"]);
  });

  test("after the end of their record", () => {
    expect(wrong(...all, event("updated", 2, 2))).toEqual(["pet 2 version 2 was told as updated, and never was so"]);
  });

  test("with another record than was stored", () => {
    const told = { ...(all[2] as Told), shown: pet(1, 2, "other") };
    expect(wrong(...all.with(2, told))).toEqual([
      'pet 1 version 2 was told as updated, as {"name":"other"} instead of {"name":"2"}',
    ]);
  });

  test("before they were stored", () => {
    expect(wrong(...all.with(3, event("updated", 1, 3, 6)))).toEqual([
      "pet 1 version 3 was told as updated before it was stored",
    ]);
    expect(wrong(...all.with(3, event("updated", 1, 3, 7)))).toEqual([]);
  });
});

describe("ids of events", () => {
  test("mean one change", () => {
    const told = { ...(all[3] as Told), id: (all[2] as Told).id };
    expect(wrong(...all.with(3, told))).toEqual(["the event pet-1-2 was pet 1 version 2, and then pet 1 version 3"]);
  });

  test("are the same for all", () => {
    const other = all.with(3, { ...(all[3] as Told), id: "other" });
    expect(violationsIn([watch(all), watch(other)], history)).toEqual([
      "pet 1 version 3 was the event pet-1-3, and then other",
    ]);
  });

  test("of a snapshot are those of the changes, or others", () => {
    const present = event("present", 1, 3);
    for (const id of [present.id, "own"])
      expect(
        violationsIn([watch(all), snapshot([{ ...present, id }, event("present", 3, 1), synced], 10)], history),
      ).toEqual([]);
  });
});

const snapshot = (told: Watch["told"], since: number): Watch => ({ kind: "pet", snapshot: true, since, told });
const wrongIn = (since: number, ...told: Watch["told"]) => violationsIn([snapshot(told, since)], history);

describe("a snapshot", () => {
  const [before, two] = [event("present", 1, 2), event("present", 2, 1)];
  const follows = all.slice(3);

  test("shows what is there, before what follows", () => {
    expect(wrongIn(6, before, two, synced, ...follows)).toEqual([]);
  });

  test("may show what was changed since, which is told all the same", () => {
    expect(wrongIn(3, event("present", 1, 3), event("present", 3, 1), synced, ...all.slice(2))).toEqual([]);
    expect(wrongIn(3, event("present", 1, 3), synced, event("deleted", 2, 1), event("created", 3, 1))).toEqual([
      "pet 1 was updated (version 2), untold",
      "pet 1 was updated (version 3), untold",
    ]);
  });

  test("leaves out what was deleted meanwhile, and nothing else", () => {
    expect(wrongIn(6, before, synced, ...follows)).toEqual([]);
    expect(wrongIn(6, before, { type: "synced", at: 7 }, ...follows)).toEqual(["pet 2 is missing in a snapshot"]);
    expect(wrongIn(6, two, synced, ...follows)).toEqual(["pet 1 is missing in a snapshot"]);
  });

  test("is told once, by ascending id, to its end, and before all changes", () => {
    expect(wrongIn(6, two, before, synced, ...follows)).toEqual(["pet 1 version 2 is not in order in a snapshot"]);
    expect(wrongIn(6, before, before, two, synced, ...follows)).toEqual([
      "pet 1 version 2 is not in order in a snapshot",
    ]);
    expect(wrongIn(6, before, two, ...follows)).toEqual([
      "a watcher of pet was never told that its snapshot is complete",
    ]);
    expect(wrongIn(6, before, ...follows.slice(0, 1), two, synced, ...follows.slice(1))).toEqual([
      "pet 1 version 3 was told as updated within a snapshot",
    ]);
    expect(wrongIn(6, before, synced, two, ...follows)).toEqual([
      'a watcher of pet was told "present" after its snapshot',
    ]);
    expect(wrongIn(6, before, two, synced, ...follows, synced)).toEqual([
      'a watcher of pet was told "synced" after its snapshot',
    ]);
  });

  test("shows nothing that was over before, is yet to come, or never was", () => {
    expect(wrongIn(6, event("present", 1, 1), two, synced, ...follows)).toEqual([
      "pet 1 version 1 was told as present, and was updated before",
    ]);
    expect(wrongIn(10, event("present", 1, 3), two, event("present", 3, 1), synced)).toEqual([
      "pet 2 version 1 was told as present, and was deleted before",
    ]);
    expect(wrongIn(3, event("present", 1, 2, 3), two, synced, ...all.slice(2))).toEqual([
      "pet 1 version 2 was told as present before it was stored",
    ]);
    expect(wrongIn(6, before, two, event("present", 9, 1), synced, ...follows)).toEqual([
      "pet 9 version 1 was told as present, and never was so",
    ]);
  });

  test("is told to those who ask for it", () => {
    expect(wrong(event("present", 1, 1), synced, ...all)).toEqual([
      "a watcher of pet was told a snapshot without asking for one",
    ]);
  });
});

describe("where nobody saw every write", () => {
  const stored = (_id: number, version: number, visible?: true) =>
    [_id, { _id, version, visible, facts: { name: `${version}` } }] as never;
  const state: State = { ...emptyState(), pets: new Map([stored(1, 3, true), stored(2, 2), stored(3, 1)]) };
  const view = (id: number, version: number): Shown => ({
    ...pet(id, version),
    view: { name: `${version}`, category: undefined, status: undefined },
  });
  const told = (type: Told["type"], id: number, version: number): Told => ({
    ...event(type, id, version),
    shown: view(id, version),
  });
  const right = [told("created", 1, 1), told("updated", 1, 3), told("created", 2, 1), told("deleted", 2, 1)];
  const judge = (seen: readonly Shown[], ...all: Told[][]) =>
    violationsIn(
      all.map((one) => watch(one)),
      knownHistory([...seen, ...all.flat().map(({ shown }) => shown)], state),
    );

  test("what was told up to the end is right", () => {
    expect(judge([view(1, 1), view(1, 3)], right, right)).toEqual([]);
  });

  test("what a GET showed, what others were told and the end must be told", () => {
    expect(judge([view(1, 2)], right)).toEqual(["pet 1 was updated (version 2), untold"]);
    expect(judge([], right, right.slice(1))).toEqual(["pet 1 was created (version 1), untold"]);
    expect(judge([], right.toSpliced(1, 1))).toEqual(["pet 1 was updated (version 3), untold"]);
    expect(judge([], right.slice(0, 3))).toEqual(["pet 2 was deleted (version 1), untold"]);
  });

  test("nothing is newer than the end", () => {
    expect(judge([], [...right, told("updated", 1, 4)])).toEqual([
      "pet 1 version 4 was told as updated after a later change",
    ]);
    expect(judge([], [...right, told("created", 3, 1)])).toEqual(["pet 3 was deleted (version 1), untold"]);
    expect(judge([], [...right, told("created", 9, 1)])).toEqual(["pet 9 was deleted (version 1), untold"]);
  });
});
