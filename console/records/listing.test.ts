import fc from "fast-check";
import { expect, test } from "vitest";
import { applyChange, beginsWith, byId, byName, type Change, type Listing, type ListRules } from "./listing.ts";

interface Thing {
  readonly id: number;
  readonly name: string;
  readonly etag: string;
  readonly colour: "red" | "blue";
}

const idOf = ({ id }: Thing): number => id;
const orders = { newest: byId(idOf, false), oldest: byId(idOf, true), names: byName };
const rules = (order: keyof typeof orders): ListRules<Thing> => ({
  idOf,
  matches: ({ colour }) => colour === "red",
  compare: orders[order],
});

const thing = (id: number, revision: number, colour: Thing["colour"] = "red", name = ""): Thing => ({
  id,
  name,
  etag: `"${revision}"`,
  colour,
});

/** What the server would list, up to the place where the page ended that was read before. */
function listed(things: ReadonlyMap<number, Thing>, { compare, matches }: ListRules<Thing>, last?: Thing) {
  const all = [...things.values()].filter(matches).sort(compare);
  return last === undefined ? all : all.filter((each) => compare(each, last) <= 0);
}

const changes = fc.array(
  fc.record({
    id: fc.integer({ min: 1, max: 8 }),
    name: fc.constantFrom("rex", "Rex", "Max"),
    blue: fc.boolean(),
    isDeleted: fc.boolean(),
  }),
  { maxLength: 30 },
);
const order = fc.constantFrom(...(Object.keys(orders) as (keyof typeof orders)[]));

test("after any changes a listing is what the server would list", () => {
  fc.assert(
    fc.property(changes, changes, fc.integer({ min: 1, max: 6 }), order, (before, after, limit, order) => {
      const things = new Map<number, Thing>();
      let revision = 0;
      const happen = ({ id, name, blue, isDeleted }: (typeof before)[number]): Change<Thing> => {
        const record = thing(id, ++revision, blue ? "blue" : "red", name);
        if (isDeleted) things.delete(record.id);
        else things.set(record.id, record);
        return { record, isDeleted };
      };
      for (const each of before) happen(each);
      const whole = listed(things, rules(order));
      const items = whole.slice(0, limit);
      // The page ends where its last record was, also when that is gone.
      const end = items.length < whole.length ? items.at(-1) : undefined;
      let listing: Listing<Thing> = { items, isWhole: end === undefined, end };
      for (const each of after) listing = applyChange(listing, happen(each), rules(order));
      expect(listing.items).toEqual(listed(things, rules(order), end));
    }),
    { seed: 1, numRuns: 500 },
  );
});

test("an older state than the one that is shown changes nothing, and the same one again neither", () => {
  const listing = { items: [thing(1, 3)], isWhole: true, end: undefined };
  expect(applyChange(listing, { record: thing(1, 2, "blue"), isDeleted: false }, rules("newest"))).toBe(listing);
  expect(applyChange(listing, { record: thing(1, 3), isDeleted: false }, rules("newest"))).toBe(listing);
});

test("what is deleted goes, whatever its revision", () => {
  const listing = { items: [thing(1, 3)], isWhole: true, end: undefined };
  expect(applyChange(listing, { record: thing(1, 2), isDeleted: true }, rules("newest")).items).toEqual([]);
});

test("a name begins with a text whatever the case of its letters, and with no pattern", () => {
  const names = ["Rex", "REXINA", "T-Rex", "(Rex)", "K9"].map((name) => ({ id: 1, name }));
  const found = (text: string) => names.filter(beginsWith(text)).map(({ name }) => name);
  expect(found("rex")).toEqual(["Rex", "REXINA"]);
  expect(found("(r")).toEqual(["(Rex)"]);
  expect(found("t-")).toEqual(["T-Rex"]);
  expect(found(".")).toEqual([]);
  expect(found("\u212a")).toEqual(["K9"]); // the kelvin sign
});
