import { describe, expect, test } from "vitest";
import { FORMAT } from "../records/record.ts";
import type { CategoryDoc } from "./model.ts";
import { beginDeletion, endDeletion, insert, knowDeletion, renumberDeletion, update } from "./rules.ts";

const active: CategoryDoc = {
  ...{ _id: 1, rev: 5, version: 3, state: "ACTIVE", visible: true, op: 0, format: FORMAT },
  ...{ name: "dogs", description: "bark" },
};
const deleting: CategoryDoc = { ...active, state: "DELETING", op: 1, pending: true };
const deleted: CategoryDoc = { _id: 1, rev: 7, version: 3, state: "DELETED", name: "", op: 1, format: FORMAT };
const stored = (decision: { action: string; doc?: unknown }) => decision.doc as CategoryDoc | undefined;

describe("creation", () => {
  test("writes an active category at version 1, once", () => {
    const first = insert(9, { name: "cats" })(undefined);
    expect(stored(first)).toMatchObject({ _id: 9, state: "ACTIVE", version: 1, visible: true, name: "cats" });
    expect(insert(1, { name: "cats" })(active)).toEqual({ action: "keep", result: active });
  });
});

describe("a change", () => {
  test("moves the version if and only if the view changes", () => {
    expect(stored(update(1n, { name: "hounds" }, {})(active))).toMatchObject({
      name: "hounds",
      version: 4,
      description: "bark",
    });
    expect(update(1n, { name: "dogs" }, {})(active)).toMatchObject({ action: "keep", result: { version: 3 } });
  });
  test("an absent description is removed when it was asked for", () => {
    expect(stored(update(1n, { name: "dogs", description: undefined }, {})(active))?.description).toBeUndefined();
  });
  test("needs the revision it was made for", () => {
    expect(() => update(1n, { name: "x" }, { etag: '"2"' })(active)).toThrow(
      expect.objectContaining({ reason: "ETAG_MISMATCH" }),
    );
    expect(update(1n, { name: "x" }, { etag: '"3"' })(active)).toMatchObject({ action: "put" });
  });
  test("waits for a deletion that is not decided", () => {
    expect(update(1n, { name: "x" }, {})(deleting)).toEqual({ action: "keep", result: "deleting" });
  });
  test.each([undefined, deleted])("of what is not there is not found, before the revision is looked at", (doc) => {
    expect(() => update(1n, { name: "x" }, { etag: '"9"' })(doc)).toThrow(
      expect.objectContaining({ reason: "CATEGORY_NOT_FOUND" }),
    );
  });
});

describe("a deletion", () => {
  test("has a number of its own, and the category stays visible until it is decided", () => {
    const decision = beginDeletion(1n, {})({ ...active, op: 4 });
    expect(decision).toMatchObject({
      result: { op: 5, joined: false },
      doc: { state: "DELETING", op: 5, pending: true, visible: true, version: 3 },
    });
  });
  test("joins the concurrent one that is under way", () => {
    expect(beginDeletion(1n, {})(deleting)).toEqual({ action: "keep", result: { op: 1, joined: true } });
  });
  test("needs the revision it was made for, and a category", () => {
    expect(() => beginDeletion(1n, { etag: '"9"' })(active)).toThrow(
      expect.objectContaining({ reason: "ETAG_MISMATCH" }),
    );
    expect(() => beginDeletion(1n, { etag: '"9"' })(deleted)).toThrow(
      expect.objectContaining({ reason: "CATEGORY_NOT_FOUND" }),
    );
  });
  test("ends as a tombstone, or steps back", () => {
    expect(stored(endDeletion(1, "DELETED")(deleting))).toEqual({
      _id: 1,
      rev: deleting.rev,
      version: 3,
      state: "DELETED",
      name: "",
      op: 1,
      format: FORMAT,
    });
    expect(stored(endDeletion(1, "ACTIVE")(deleting))).toMatchObject({
      state: "ACTIVE",
      op: 1,
      pending: undefined,
      name: "dogs",
    });
  });
  test.each([
    ["another deletion", 2, deleting],
    ["a category that is active again", 1, active],
    ["a category that is gone", 1, deleted],
  ])("decides nothing for %s", (_, op, doc) => {
    for (const end of ["DELETED", "ACTIVE"] as const)
      expect(endDeletion(op, end)(doc)).toEqual({ action: "keep", result: false });
  });
});

describe("a category that was restored from an older copy", () => {
  test("learns the number of the latest deletion from Pet, and gives none of these again", () => {
    const known = knowDeletion(4)(active);
    expect(known).toMatchObject({ action: "put", doc: { ...active, op: 4 }, result: { op: 4, version: 3 } });
    expect(beginDeletion(1n, {})(stored(known))).toMatchObject({ result: { op: 5 } });
  });
  test.each([undefined, { ...active, op: 4 }, { ...active, op: 5 }, deleting, deleted])(
    "has nothing to learn: %j",
    (doc) => {
      expect(knowDeletion(4)(doc)).toEqual({ action: "keep", result: doc });
    },
  );
  test("gives a deletion that has not ended a number above those that Pet knows", () => {
    for (const latest of [1, 4])
      expect(renumberDeletion(1, latest)(deleting)).toMatchObject({
        ...{ action: "put", result: true },
        doc: { ...deleting, op: latest + 1 },
      });
  });
  test.each([
    ["that Pet does not know yet", 1, 0, deleting],
    ["that has another number", 2, 4, deleting],
    ["that was given up", 1, 4, active],
    ["that has ended", 1, 4, deleted],
    ["of no category", 1, 4, undefined],
  ])("leaves a deletion %s", (_, op, latest, doc) => {
    expect(renumberDeletion(op, latest)(doc)).toEqual({ action: "keep", result: false });
  });
});
