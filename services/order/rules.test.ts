import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FORMAT } from "../resource/record.ts";
import { NO_PET, type OrderDoc, type OrderParams } from "./model.ts";
import {
  abort,
  asPlaced,
  cancel,
  commit,
  insert,
  insertAborted,
  PLACED_TIMEOUT_MS,
  release,
  reserve,
  timeOut,
  update,
} from "./rules.ts";

const NOW = 1_800_000_000_000;
const ship = { seconds: 1_800_000_000, nanos: 5 };
const result = (decision: { result: OrderDoc | undefined }) => decision.result as OrderDoc;

const place = (params: OrderParams) => result(insert(1, params, NOW)(undefined, 1));
const placed = place({ petId: 7, quantity: 2, shipDate: ship });
const reserved = result(reserve(placed, 2));
const committing = result(update(1n, { complete: true }, {})(reserved, 3));
const complete = result(commit(committing, 4));
const aborting = result(abort("INSUFFICIENT_STOCK")(placed, 2));
const aborted = result(release(aborting, 3));
const cancelling = result(cancel(1n, {})(reserved, 3));
const cancelled = result(release(cancelling, 4));
const all = { placed, reserved, committing, complete, aborting, aborted, cancelling, cancelled };

const reason = (reason: string) => expect.objectContaining({ reason });
const change = (doc: OrderDoc | undefined, change: OrderParams, etag?: string) => update(1n, change, { etag })(doc, 9);

describe("an order for a pet", () => {
  test("is placed with a quantity, open, and invisible until Inventory holds its units", () => {
    expect(place({ petId: 7 })).toMatchObject({
      state: "PLACED",
      quantity: 1,
      complete: false,
      pending: true,
      version: 1,
    });
    expect(placed.placedAt).toBe(NOW);
    expect(reserved).toMatchObject({ state: "RESERVED", visible: true, completed: false, version: 1 });
  });
  test("placed as complete is committed at once", () => {
    const committing = result(reserve(place({ petId: 7, complete: true }), 2));
    expect(committing).toMatchObject({
      state: "COMMITTING",
      visible: true,
      pending: true,
      completed: true,
      version: 1,
    });
    expect(result(commit(committing, 3))).toMatchObject({ state: "COMPLETE", version: 1 });
  });
  test("is placed once: a second attempt finds the first", () => {
    expect(insert(1, { petId: 8 }, NOW)(reserved, 3)).toEqual({ action: "keep", result: reserved });
    const given = result(insertAborted(1)(undefined, 1));
    expect(given).toMatchObject({ state: "ABORTED", refusal: undefined });
    expect(insert(1, { petId: 8 }, NOW)(given, 2)).toMatchObject({ action: "keep" });
    expect(insertAborted(1)(placed, 2)).toMatchObject({ action: "keep" });
  });
  test.each([
    ["visible", ["reserved", "committing", "complete", "cancelling"]],
    ["pending", ["placed", "committing", "aborting", "cancelling"]],
    ["completed", ["committing", "complete"]],
    ["placedAt", ["placed"]],
  ] as const)("is %s when it is %s, and in no other state", (flag, names) => {
    const found = Object.entries(all).filter(([, doc]) => doc[flag]);
    expect(found.map(([name]) => name)).toEqual(names);
  });
  test("leaves nothing but its end when it is refused or cancelled", () => {
    const end = { _id: 1, version: 1, format: FORMAT };
    expect(JSON.parse(JSON.stringify({ ...aborted, rev: undefined }))).toEqual({
      ...end,
      state: "ABORTED",
      refusal: "INSUFFICIENT_STOCK",
    });
    expect(JSON.parse(JSON.stringify({ ...cancelled, rev: undefined }))).toEqual({ ...end, state: "CANCELLED" });
  });
});

describe("an order without a pet", () => {
  test.each([{}, { quantity: 3 }, { complete: false }, { complete: true, shipDate: ship }])(
    "keeps what was sent, and needs no step at Inventory: %j",
    (params) => {
      const doc = place(params);
      expect(asPlaced(params)).toEqual(params);
      expect(doc).toMatchObject({ ...params, state: params.complete ? "COMPLETE" : "RESERVED", visible: true });
      expect(doc.pending).toBeUndefined();
      expect(doc.completed).toBe(params.complete === true);
      expect("petId" in doc).toBe(false);
    },
  );
  test("is completed and cancelled in one step", () => {
    expect(result(change(place({}), { complete: true }))).toMatchObject({
      state: "COMPLETE",
      version: 2,
      completed: true,
    });
    expect(result(cancel(1n, {})(place({ quantity: 2 }), 2))).toMatchObject({ state: "CANCELLED" });
  });
  test("is not complete unless the client says so; to send false is no change", () => {
    expect(change(place({}), { complete: false })).toMatchObject({ action: "keep", result: { version: 1 } });
  });
  test("has its pet and quantity fixed too, also when it has none", () => {
    expect(() => change(place({}), { petId: 7 })).toThrow(reason("ORDER_FIXED"));
    expect(() => change(place({}), { quantity: 1 })).toThrow(reason("ORDER_FIXED"));
    expect(change(place({ quantity: 3 }), { quantity: 3 })).toMatchObject({ action: "keep" });
  });
});

describe("each transition starts from its state and no other", () => {
  const arrows: [string, typeof commit, readonly string[]][] = [
    ["reserve", reserve, ["placed"]],
    ["abort", abort("PET_NOT_FOUND"), ["placed"]],
    ["time out", timeOut(NOW + PLACED_TIMEOUT_MS), ["placed"]],
    ["commit", commit, ["committing"]],
    ["release", release, ["aborting", "cancelling"]],
    ["place", insert(1, {}, NOW), []],
  ];
  test.each(arrows)("%s", (_, arrow, from) => {
    const moved = Object.entries(all).filter(([, doc]) => arrow(doc, 9).action === "put");
    expect(moved.map(([name]) => name)).toEqual(from);
    for (const [name, doc] of Object.entries(all)) if (!from.includes(name)) expect(arrow(doc, 9).result).toBe(doc);
  });
  test("an order may be PLACED for 6 seconds before it is aborted", () => {
    expect(timeOut(NOW + 5_999)(placed, 2)).toEqual({ action: "keep", result: placed });
    const timedOut = result(timeOut(NOW + 6_000)(placed, 2));
    expect([timedOut.state, timedOut.refusal]).toEqual(["ABORTING", undefined]);
  });
});

describe("a change", () => {
  test("completes an open order; repeating it changes nothing", () => {
    expect(committing).toMatchObject({ state: "COMMITTING", complete: true, version: 2 });
    for (const doc of [committing, complete])
      expect(change(doc, { complete: true })).toEqual({ action: "keep", result: doc });
  });
  test.each([reserved, committing, complete])("sets and removes the ship date: $state", (doc) => {
    const later = { seconds: -5, nanos: 1 };
    const next = result(change(doc, { shipDate: later }));
    expect(next).toMatchObject({ state: doc.state, shipDate: later, version: doc.version + 1 });
    expect(change(next, { shipDate: { ...later } })).toMatchObject({ action: "keep" });
    expect(result(change(next, { shipDate: undefined })).shipDate).toBeUndefined();
    expect(change(next, {})).toMatchObject({ action: "keep", result: { shipDate: later } });
  });
  test("can't open a complete order again, whatever else it says", () => {
    for (const doc of [committing, complete]) {
      expect(() => change(doc, { complete: false })).toThrow(reason("ORDER_COMPLETE"));
      expect(() => change(doc, { complete: false, petId: 8 })).toThrow(reason("ORDER_COMPLETE"));
    }
  });
  test("can't touch pet and quantity; only a value that differs is a change", () => {
    for (const doc of [reserved, committing, complete]) {
      expect(() => change(doc, { petId: 8 })).toThrow(reason("ORDER_FIXED"));
      expect(() => change(doc, { petId: NO_PET })).toThrow(reason("ORDER_FIXED"));
      expect(() => change(doc, { quantity: 3 })).toThrow(reason("ORDER_FIXED"));
      expect(change(doc, { petId: 7, quantity: 2 })).toEqual({ action: "keep", result: doc });
    }
    expect(change(reserved, { complete: false })).toMatchObject({ action: "keep" });
  });
  test("is judged after the order's existence and its revision", () => {
    for (const doc of [undefined, placed, aborting, aborted, cancelled])
      expect(() => change(doc, { petId: 8 }, '"9"')).toThrow(reason("ORDER_NOT_FOUND"));
    expect(() => change(complete, { complete: false }, '"1"')).toThrow(reason("ETAG_MISMATCH"));
    expect(result(change(complete, { shipDate: undefined }, '"2"'))).toMatchObject({ version: 3 });
  });
  test("leaves an order that is being cancelled to its end", () => {
    expect(change(cancelling, { petId: 8 }, '"9"')).toEqual({ action: "keep", result: cancelling });
  });
});

describe("a cancellation", () => {
  test("stays visible until its end, and a repeated delete joins it, under any revision", () => {
    expect(cancelling).toMatchObject({ state: "CANCELLING", pending: true, petId: 7, visible: true });
    expect(cancel(1n, { etag: '"9"' })(cancelling, 4)).toEqual({ action: "keep", result: cancelling });
  });
  test("of a complete order is refused", () => {
    for (const doc of [committing, complete]) expect(() => cancel(1n, {})(doc, 9)).toThrow(reason("ORDER_COMPLETE"));
  });
  test("is judged after the order's existence and its revision", () => {
    for (const doc of [undefined, placed, aborting, aborted, cancelled])
      expect(() => cancel(1n, { etag: '"9"' })(doc, 9)).toThrow(reason("ORDER_NOT_FOUND"));
    expect(() => cancel(1n, { etag: '"9"' })(reserved, 9)).toThrow(reason("ETAG_MISMATCH"));
    expect(() => cancel(1n, { etag: '"9"' })(complete, 9)).toThrow(reason("ETAG_MISMATCH"));
  });
});

test("whatever happens, an order goes forward only, and its version moves if and only if its view does", () => {
  const params = fc.record(
    { petId: fc.constantFrom(7, 8), quantity: fc.constantFrom(1, 2), complete: fc.boolean() },
    { requiredKeys: [] },
  );
  const moment = fc.record(
    { seconds: fc.constantFrom(-1, 1), nanos: fc.constantFrom(0, 1) },
    { noNullPrototype: true },
  );
  const changes = fc
    .record(
      {
        petId: fc.constantFrom(7, 8),
        quantity: fc.constantFrom(1, 2),
        complete: fc.boolean(),
        shipDate: fc.option(moment, { nil: undefined }),
      },
      { requiredKeys: [] },
    )
    .map((asked) => update(1n, asked, {}));
  const moves = fc.oneof(
    changes,
    params.map((given) => insert(1, given, NOW)),
    fc.constantFrom(reserve, abort("PET_NOT_FOUND"), abort(), timeOut(NOW * 2), commit, release, insertAborted(1)),
    fc.constant(cancel(1n, {})),
  );
  const place: Record<string, number> = { PLACED: 0, RESERVED: 1, COMMITTING: 2, COMPLETE: 3 };
  const rank = ({ state }: OrderDoc) => place[state] ?? (state.endsWith("ING") ? 4 : 5);
  const view = (doc: OrderDoc) => JSON.stringify([doc.petId, doc.quantity, doc.complete, doc.shipDate]);
  fc.assert(
    fc.property(fc.array(moves, { maxLength: 12 }), (history) => {
      let doc: OrderDoc | undefined;
      for (const [rev, move] of history.entries()) {
        const before = doc;
        try {
          const decision = move(doc, rev + 1);
          doc = decision.action === "put" ? { ...decision.doc, rev: rev + 1 } : doc;
        } catch (error) {
          expect(error).toMatchObject({ reason: expect.stringMatching(/^ORDER_/) });
        }
        if (!before || !doc || doc === before) continue;
        expect(rank(doc)).toBeGreaterThanOrEqual(rank(before));
        if (before.state === "COMPLETE") expect(doc.state).toBe("COMPLETE");
        if (!before.visible || !doc.visible) expect(doc.version).toBe(before.version);
        else expect(doc.version - before.version).toBe(view(doc) === view(before) ? 0 : 1);
        if (doc.visible) expect([doc.petId, doc.quantity]).toEqual([before.petId, before.quantity]);
      }
    }),
    { numRuns: 2_000 },
  );
});
