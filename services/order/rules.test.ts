import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FORMAT } from "../records/record.ts";
import { NO_PET, ORDERS, type OrderDoc, type OrderParams } from "./model.ts";
import { asPlaced, cancel, insert, insertAborted, update } from "./rules.ts";

const TAG = "Xq3_f0aB";
const ship = { seconds: 1_800_000_000, nanos: 5 };
const result = (decision: { result: OrderDoc | undefined }) => decision.result as OrderDoc;
const stored = (decision: object) => ("doc" in decision ? (decision.doc as OrderDoc) : expect.unreachable("kept"));

const place = (params: OrderParams) => result(insert(1, params, TAG)(undefined, 1));
const reserved = place({ petId: 7, quantity: 2, shipDate: ship });
const complete = result(update(1n, { complete: true }, {})(reserved, 2));
const refused = result(insertAborted(1, "INSUFFICIENT_STOCK")(undefined, 1));
const aborted = result(insertAborted(1)(undefined, 1));
const cancelled = stored(cancel(1n, {})(reserved, 2));
const all = { reserved, complete, refused, aborted, cancelled };

const reason = (reason: string) => expect.objectContaining({ reason });
const change = (doc: OrderDoc | undefined, change: OrderParams, etag?: string) => update(1n, change, { etag })(doc, 9);
/** The members that are not undefined, but for the revision. */
const members = (doc: OrderDoc) => JSON.parse(JSON.stringify({ ...doc, rev: undefined }));

describe("an order for a pet", () => {
  test("is placed with a quantity, open and visible, with the tag of its reservation", () => {
    expect(members(place({ petId: 7 }))).toEqual({
      ...{ _id: 1, version: 1, format: FORMAT, state: "RESERVED", visible: true },
      ...{ petId: 7, quantity: 1, complete: false, completed: false, tag: TAG },
    });
  });
  test("placed as complete is COMPLETE at once", () => {
    const doc = place({ petId: 7, complete: true });
    expect(doc).toMatchObject({ state: "COMPLETE", visible: true, completed: true, tag: TAG, version: 1 });
  });
  test.each(Object.values(all))("is stored only where nothing is: $state stays, and is the result", (doc) => {
    expect(insert(1, { petId: 8 }, "other")(doc, 9)).toEqual({ action: "keep", result: doc });
  });
  test.each([
    ["visible", ["reserved", "complete"]],
    ["completed", ["complete"]],
    ["tag", ["reserved", "complete"]],
  ] as const)("is %s when it is %s, and in no other state", (flag, names) => {
    const found = Object.entries(all).filter(([, doc]) => doc[flag]);
    expect(found.map(([name]) => name)).toEqual(names);
  });
  test("leaves nothing but its end when it is aborted or cancelled", () => {
    const end = { _id: 1, version: 1, format: FORMAT };
    expect(members(aborted)).toEqual({ ...end, state: "ABORTED" });
    expect(members(refused)).toEqual({ ...end, state: "ABORTED", refusal: "INSUFFICIENT_STOCK" });
    expect(members(cancelled)).toEqual({ ...end, state: "CANCELLED" });
  });
  test("is as the store reads it", () => {
    for (const doc of Object.values(all)) expect(ORDERS.document?.(doc)).toBeUndefined();
  });
});

describe("an abortion", () => {
  test("is stored where nothing is", () => {
    expect(insertAborted(1)(undefined, 1)).toMatchObject({ action: "put", doc: { state: "ABORTED" } });
  });
  test.each(Object.values(all))("is stored only there: $state stays, and is the result", (doc) => {
    expect(insertAborted(1, "PET_NOT_FOUND")(doc, 9)).toEqual({ action: "keep", result: doc });
  });
});

describe("an order without a pet", () => {
  test.each([{}, { quantity: 3 }, { complete: false }, { complete: true, shipDate: ship }])(
    "keeps what was sent, and has no reservation: %j",
    (params) => {
      const doc = place(params);
      expect(asPlaced(params)).toEqual(params);
      expect(doc).toMatchObject({ ...params, state: params.complete ? "COMPLETE" : "RESERVED", visible: true });
      expect(doc.completed).toBe(params.complete === true);
      expect("petId" in doc || "tag" in doc).toBe(false);
    },
  );
  test("is completed and cancelled in one step", () => {
    expect(result(change(place({}), { complete: true }))).toMatchObject({
      state: "COMPLETE",
      version: 2,
      completed: true,
    });
    expect(stored(cancel(1n, {})(place({ quantity: 2 }), 2))).toMatchObject({ state: "CANCELLED" });
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

describe("a change", () => {
  test("completes an open order; repeating it changes nothing", () => {
    expect(complete).toMatchObject({ state: "COMPLETE", complete: true, completed: true, tag: TAG, version: 2 });
    expect(change(complete, { complete: true })).toEqual({ action: "keep", result: complete });
  });
  test.each([reserved, complete])("sets and removes the ship date: $state", (doc) => {
    const later = { seconds: -5, nanos: 1 };
    const next = result(change(doc, { shipDate: later }));
    expect(next).toMatchObject({ state: doc.state, shipDate: later, version: doc.version + 1 });
    expect(change(next, { shipDate: { ...later } })).toMatchObject({ action: "keep" });
    expect(result(change(next, { shipDate: undefined })).shipDate).toBeUndefined();
    expect(change(next, {})).toMatchObject({ action: "keep", result: { shipDate: later } });
  });
  test("can't open a complete order again, whatever else it says", () => {
    expect(() => change(complete, { complete: false })).toThrow(reason("ORDER_COMPLETE"));
    expect(() => change(complete, { complete: false, petId: 8 })).toThrow(reason("ORDER_COMPLETE"));
  });
  test("can't touch pet and quantity; only a value that differs is a change", () => {
    for (const doc of [reserved, complete]) {
      expect(() => change(doc, { petId: 8 })).toThrow(reason("ORDER_FIXED"));
      expect(() => change(doc, { petId: NO_PET })).toThrow(reason("ORDER_FIXED"));
      expect(() => change(doc, { quantity: 3 })).toThrow(reason("ORDER_FIXED"));
      expect(change(doc, { petId: 7, quantity: 2 })).toEqual({ action: "keep", result: doc });
    }
    expect(change(reserved, { complete: false })).toMatchObject({ action: "keep" });
  });
  test("is judged after the order's existence and its revision", () => {
    for (const doc of [undefined, refused, aborted, cancelled])
      expect(() => change(doc, { petId: 8 }, '"9"')).toThrow(reason("ORDER_NOT_FOUND"));
    expect(() => change(reserved, { complete: true }, '"2"')).toThrow(reason("ETAG_MISMATCH"));
    expect(() => change(complete, { complete: false }, '"1"')).toThrow(reason("ETAG_MISMATCH"));
    expect(result(change(complete, { shipDate: undefined }, '"2"'))).toMatchObject({ version: 3 });
  });
});

describe("a cancellation", () => {
  test("ends an open order at once, and its result says what has to be released", () => {
    expect(cancel(1n, {})(reserved, 2)).toMatchObject({ action: "put", doc: { state: "CANCELLED" }, result: reserved });
  });
  test("of a complete order is refused", () => {
    expect(() => cancel(1n, {})(complete, 9)).toThrow(reason("ORDER_COMPLETE"));
  });
  test("is judged after the order's existence and its revision", () => {
    for (const doc of [undefined, refused, aborted, cancelled])
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
    params.map((given) => insert(1, given, TAG)),
    fc.constantFrom(insertAborted(1), insertAborted(1, "PET_NOT_FOUND")),
    fc.constant(cancel(1n, {})),
  );
  const rank = { RESERVED: 0, COMPLETE: 1, CANCELLED: 1, ABORTED: 1 };
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
        expect(rank[doc.state]).toBeGreaterThanOrEqual(rank[before.state]);
        if (before.state !== "RESERVED") expect(doc.state).toBe(before.state);
        if (!before.visible || !doc.visible) expect(doc.version).toBe(before.version);
        else expect(doc.version - before.version).toBe(view(doc) === view(before) ? 0 : 1);
        if (doc.visible)
          expect([doc.petId, doc.quantity, doc.tag]).toEqual([before.petId, before.quantity, before.tag]);
        else expect(before.state).toBe("RESERVED");
      }
    }),
    { numRuns: 2_000 },
  );
});
