import fc from "fast-check";
import { expect, test } from "vitest";
import { applyChange, type Change, type Listing, type ListRules } from "./listing.ts";

interface Thing {
  readonly id: number;
  readonly etag: string;
  readonly colour: "red" | "blue";
}

const rules = (isAscending: boolean): ListRules<Thing> => ({
  idOf: ({ id }) => id,
  matches: ({ colour }) => colour === "red",
  isAscending,
});

const thing = (id: number, revision: number, colour: Thing["colour"] = "red"): Thing => ({
  id,
  etag: `"${revision}"`,
  colour,
});

/** What the server would list, up to the place where the page ended that was read before. */
function listed(things: ReadonlyMap<number, Thing>, { isAscending, matches }: ListRules<Thing>, last?: number) {
  const all = [...things.values()].filter(matches).sort((a, b) => Number(isAscending ? a.id - b.id : b.id - a.id));
  return last === undefined ? all : all.filter(({ id }) => (isAscending ? id <= last : id >= last));
}

const changes = fc.array(
  fc.record({ id: fc.integer({ min: 1, max: 8 }), blue: fc.boolean(), isDeleted: fc.boolean() }),
  { maxLength: 30 },
);

test("after any changes a listing is what the server would list", () => {
  fc.assert(
    fc.property(changes, changes, fc.integer({ min: 1, max: 6 }), fc.boolean(), (before, after, limit, isAscending) => {
      const things = new Map<number, Thing>();
      let revision = 0;
      const happen = ({ id, blue, isDeleted }: { id: number; blue: boolean; isDeleted: boolean }): Change<Thing> => {
        const record = thing(id, ++revision, blue ? "blue" : "red");
        if (isDeleted) things.delete(record.id);
        else things.set(record.id, record);
        return { record, isDeleted };
      };
      for (const each of before) happen(each);
      const whole = listed(things, rules(isAscending));
      const items = whole.slice(0, limit);
      // The page ends where its last record was, also when that is gone.
      const end = items.length < whole.length ? items.at(-1)?.id : undefined;
      let listing: Listing<Thing> = { items, end };
      for (const each of after) listing = applyChange(listing, happen(each), rules(isAscending));
      expect(listing.items).toEqual(listed(things, rules(isAscending), end));
    }),
    { seed: 1, numRuns: 500 },
  );
});

test("an older state than the one that is shown changes nothing, and the same one again neither", () => {
  const listing = { items: [thing(1, 3)], end: undefined };
  expect(applyChange(listing, { record: thing(1, 2, "blue"), isDeleted: false }, rules(false))).toBe(listing);
  expect(applyChange(listing, { record: thing(1, 3), isDeleted: false }, rules(false))).toBe(listing);
});

test("what is deleted goes, whatever its revision", () => {
  const listing = { items: [thing(1, 3)], end: undefined };
  expect(applyChange(listing, { record: thing(1, 2), isDeleted: true }, rules(false)).items).toEqual([]);
});
