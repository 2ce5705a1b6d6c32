import { describe, expect, test } from "vitest";
import type { Status } from "../records/record.ts";
import { FORMAT } from "../records/record.ts";
import type { PetDoc } from "./model.ts";
import {
  abort,
  activate,
  applyDeletion,
  applyIntent,
  applyStatus,
  beginDeletion,
  beginUpdate,
  dropIntent,
  insert,
  insertAborted,
  renumberIntent,
} from "./rules.ts";

const active: PetDoc = {
  ...{ _id: 1, rev: 5, version: 3, state: "ACTIVE", visible: true, op: 4, format: FORMAT },
  ...{ facts: { name: "Rex" }, categoryId: 7, member: 7, status: "available", statusRev: 10, listing: "available" },
};
const moving: PetDoc = {
  ...active,
  ...{ op: 5, pending: true, joining: 8, intent: { op: 5, facts: { name: "Max" }, categoryId: 8, listing: "sold" } },
};
const creating: PetDoc = {
  ...active,
  state: "CREATING",
  visible: undefined,
  version: 1,
  statusRev: 0,
  op: 0,
  pending: true,
};
const deleted: PetDoc = { ...active, state: "DELETED", visible: undefined, member: undefined };
const voided: PetDoc = { ...deleted, state: "ABORTED" };
const stock = (status: Status, statusRev: number) => ({ status, statusRev });
const doc = (decision: { action: string }) => (decision as { doc?: PetDoc }).doc as PetDoc;
const reason = (name: string) => expect.objectContaining({ reason: name });
const untouched = expect.objectContaining({ action: "keep" });

describe("creation", () => {
  test("counts as a member of its category before it is visible", () => {
    const fresh = doc(insert(1, { facts: { name: "Rex" }, categoryId: 7 })(undefined));
    expect(fresh).toMatchObject({ state: "CREATING", member: 7, version: 1, listing: "available", pending: true });
    expect(fresh.visible).toBeUndefined();
  });
  test("that is refused under a key is stored as a tombstone", () => {
    const refused = doc(insertAborted(1)(undefined));
    expect(refused).toMatchObject({ _id: 1, state: "ABORTED", facts: { name: "" } });
    for (const mark of ["visible", "member", "pending"] as const) expect(refused[mark]).toBeUndefined();
  });
  test("never writes over what is there", () => {
    for (const present of [active, voided]) {
      expect(insert(1, { facts: { name: "x" }, categoryId: 1 })(present)).toEqual(untouched);
      expect(insertAborted(1)(present)).toEqual(untouched);
    }
  });
  test("ends with the status that Inventory answered, at version 1", () => {
    expect(doc(activate(stock("sold", 3))(creating))).toMatchObject({
      ...{ state: "ACTIVE", visible: true, pending: undefined, version: 1 },
      ...{ status: "sold", statusRev: 3, firstStatus: "sold" },
    });
  });
  test("keeps a newer status that came before its end", () => {
    const updated = doc(applyStatus(1n, stock("pending", 9))(creating));
    expect(updated).toMatchObject({ state: "CREATING", version: 1 });
    expect(doc(activate(stock("available", 3))(updated))).toMatchObject({ status: "pending", firstStatus: "pending" });
  });
  test("ends once: a late or concurrent attempt changes nothing", () => {
    for (const pet of [active, moving, deleted, voided]) expect(activate(stock("sold", 99))(pet)).toEqual(untouched);
  });
  test("is refused for good only when its category is gone, and leaves a tombstone", () => {
    expect(doc(abort(creating))).toMatchObject({ state: "ABORTED", facts: { name: "" } });
    expect(doc(abort(creating)).member).toBeUndefined();
    expect(abort(active)).toEqual(untouched);
  });
});

describe("a change", () => {
  test("of facts alone is done in one step", () => {
    expect(
      beginUpdate(1n, { facts: { name: "Max" }, categoryId: 7 }, { etag: '"3"' }, undefined)(active),
    ).toMatchObject({
      action: "put",
      doc: { facts: { name: "Max" }, version: 4, op: 4 },
      result: { kind: "done", view: { facts: { name: "Max" }, version: 4 } },
    });
  });
  test("of nothing changes nothing", () => {
    expect(beginUpdate(1n, {}, {}, undefined)(active)).toEqual(untouched);
    expect(beginUpdate(1n, { facts: { name: "Rex" }, categoryId: 7 }, {}, undefined)(active)).toEqual(untouched);
  });
  test("of category or status is written down first, and counts in the new category", () => {
    const begun = beginUpdate(1n, { categoryId: 8 }, {}, "exists")(active);
    expect(begun).toMatchObject({ result: { kind: "intent", op: 5 } });
    expect(doc(begun)).toMatchObject({
      joining: 8,
      member: 7,
      op: 5,
      pending: true,
      version: 3,
      intent: { op: 5, categoryId: 8 },
    });
    expect(doc(beginUpdate(1n, { listing: "available" }, {}, undefined)(active)).joining).toBeUndefined();
  });
  test("waits for an unfinished intent, also when only facts change: before If-Match is judged", () => {
    const busy = { action: "keep", result: { kind: "busy", op: 5, pet: moving } };
    expect(beginUpdate(1n, { facts: { name: "x" } }, { etag: '"99"' }, undefined)(moving)).toEqual(busy);
    expect(beginDeletion(1n, { etag: '"99"' })(moving)).toEqual(busy);
  });
  test("is judged in this order: pet, revision, category", () => {
    const change = (etag?: string) => beginUpdate(1n, { categoryId: 8 }, { etag }, "CATEGORY_NOT_FOUND");
    expect(() => change('"9"')(undefined)).toThrow(reason("PET_NOT_FOUND"));
    expect(() => change('"9"')(active)).toThrow(reason("ETAG_MISMATCH"));
    expect(() => change()(active)).toThrow(reason("CATEGORY_NOT_FOUND"));
  });
  test("to another category does not begin until that one has been asked", () => {
    expect(beginUpdate(1n, { categoryId: 8, listing: "sold" }, { etag: '"3"' }, undefined)(active)).toEqual({
      action: "keep",
      result: { kind: "category unchecked", categoryId: 8 },
    });
  });
  test("that stays in its category does not care whether others exist", () => {
    expect(beginUpdate(1n, { facts: { name: "x" }, categoryId: 7 }, {}, "CATEGORY_NOT_FOUND")(active)).toMatchObject({
      action: "put",
    });
  });
  test("or a deletion needs the revision it was made for", () => {
    expect(() => beginDeletion(1n, { etag: '"9"' })(active)).toThrow(reason("ETAG_MISMATCH"));
    expect(doc(beginDeletion(1n, { etag: '"3"' })(active))).toMatchObject({
      intent: { op: 5, delete: true },
      pending: true,
    });
  });
  test.each([creating, deleted, voided])("of a pet that is $state is not found", (pet) => {
    expect(() => beginUpdate(1n, {}, {}, undefined)(pet)).toThrow(reason("PET_NOT_FOUND"));
    expect(() => beginDeletion(1n, {})(pet)).toThrow(reason("PET_NOT_FOUND"));
  });
});

describe("an intent", () => {
  test("is applied whole, with the status that came of it", () => {
    const applied = doc(applyIntent(5, stock("sold", 11))(moving));
    const shown = { facts: { name: "Max" }, categoryId: 8, status: "sold", version: 4 };
    expect(applied).toMatchObject({ ...shown, member: 8, statusRev: 11, last: { op: 5, shown } });
    expect([applied.intent, applied.joining, applied.pending]).toEqual([undefined, undefined, undefined]);
  });
  test("never takes an older status for a newer one", () => {
    expect(doc(applyIntent(5, stock("sold", 9))(moving))).toMatchObject({ status: "available", statusRev: 10 });
  });
  test("that is refused leaves the pet as it was, and says why to all who advanced it", () => {
    const dropped = doc(dropIntent(5, "INSUFFICIENT_STOCK")(moving));
    expect(dropped).toMatchObject({
      facts: { name: "Rex" },
      categoryId: 7,
      version: 3,
      last: { op: 5, refusal: "INSUFFICIENT_STOCK" },
    });
    expect([dropped.intent, dropped.joining, dropped.pending]).toEqual([undefined, undefined, undefined]);
  });
  test("to delete ends as a tombstone that belongs to no category", () => {
    const gone = doc(applyDeletion(5)({ ...moving, intent: { op: 5, delete: true } }));
    expect(gone).toMatchObject({ state: "DELETED", last: { op: 5 }, statusRev: 10 });
    expect([gone.visible, gone.member, gone.joining, gone.pending, gone.intent]).toEqual(Array(5).fill(undefined));
  });
  test.each([5, 8])(
    "gets a number above the latest that Inventory knows (%i), if it is not above already",
    (latest) => {
      const { intent } = moving;
      expect(doc(renumberIntent(5, latest)(moving))).toEqual({
        ...{ ...moving, op: latest + 1 },
        intent: { ...intent, op: latest + 1 },
      });
      for (const [op, pet] of [
        [5, active],
        [5, deleted],
        [4, moving],
      ] as const)
        expect(renumberIntent(op, latest)(pet)).toEqual(untouched);
      expect(renumberIntent(5, 4)(moving)).toEqual(untouched);
    },
  );
  test.each([4, 6])("other than the one in the pet (%i) does nothing", (op) => {
    for (const rule of [applyIntent(op, undefined), applyDeletion(op), dropIntent(op, "INSUFFICIENT_STOCK")])
      expect(rule(moving)).toEqual(untouched);
  });
});

describe("a status from Inventory", () => {
  test("is stored when it is newer, and moves the version when it is another", () => {
    expect(doc(applyStatus(1n, stock("pending", 11))(active))).toMatchObject({
      status: "pending",
      statusRev: 11,
      version: 4,
    });
    expect(doc(applyStatus(1n, stock("available", 11))(active))).toMatchObject({ statusRev: 11, version: 3 });
  });
  test.each([10, 9])("that is not newer (revision %i) changes nothing", (rev) => {
    expect(applyStatus(1n, stock("pending", rev))(active)).toEqual(untouched);
  });
  test("that is not newer is answered with the one that the pet keeps, if it is another", () => {
    const kept = stock("available", 10);
    for (const other of [stock("pending", 10), stock("pending", 9), stock("available", 9)])
      expect(applyStatus(1n, other)(active)).toEqual({ action: "keep", result: kept });
    expect(applyStatus(1n, kept)(active)).toEqual({ action: "keep", result: undefined });
  });
  test.each([deleted, voided])("of a pet that is $state is accepted, and changes nothing", (pet) => {
    expect(applyStatus(1n, stock("pending", 99))(pet)).toEqual(untouched);
  });
  test("of a pet that is being deleted is stored later, if the pet stays", () => {
    const deleting: PetDoc = { ...active, op: 5, pending: true, intent: { op: 5, delete: true } };
    expect(() => applyStatus(1n, stock("pending", 11))(deleting)).toThrow(reason("CONCURRENT_UPDATE"));
    expect(applyStatus(1n, stock("available", 10))(deleting)).toEqual(untouched);
  });
  test("of a pet that is unwritten is an error, for it may be written later", () => {
    expect(() => applyStatus(1n, stock("pending", 1))(undefined)).toThrow(reason("PET_NOT_FOUND"));
  });
});
