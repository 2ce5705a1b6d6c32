/** What changes tell of records is what callers could see of them, and all of it. */
import { create } from "@bufbuild/protobuf";
import { type Change, type Doc, put, type Schema } from "@petstore/store/port";
import { expect, test } from "vitest";
import { CategorySchema } from "#proto/petstore/category/v1/category_pb.ts";
import { openMemory } from "../packages/store/memory/memory.ts";
import * as category from "./category/model.ts";
import * as inventory from "./inventory/model.ts";
import * as order from "./order/model.ts";
import * as pet from "./pet/model.ts";
import { createExpiry, keepingOf } from "./records/expiry.ts";
import type { Worker } from "./records/module.ts";
import { FORMAT } from "./records/record.ts";
import { RETENTION } from "./records/retention.ts";

const record = { _id: 7, version: 1, format: FORMAT } as const;
const facts = { name: "Rex" };

/** Stores the documents one after the other, and answers what is told of them. */
async function tell<T extends Doc, V>(schema: Schema<T, never, V>, docs: readonly object[]): Promise<Change<V>[]> {
  const collection = await openMemory().collection(schema);
  const { position } = await collection.changes({ signal: AbortSignal.abort() });
  for (const doc of docs) await collection.update(7, () => put(doc as never, 0));
  const stop = new AbortController();
  const told: Change<V>[] = [];
  const end = docs.length;
  for await (const batch of await collection.changes({ after: position, signal: stop.signal })) {
    told.push(...batch);
    if (told.some(({ rev }) => rev === end)) stop.abort();
  }
  return told;
}
const brief = (told: readonly Change<unknown>[]) => told.map(({ type, rev }) => `${type}@${rev}`);

test("a pet is told from ACTIVE to DELETED, and not while it is created or an intent is stored", async () => {
  const created = {
    ...record,
    state: "CREATING",
    facts,
    categoryId: 3,
    status: "available",
    listing: "available",
    statusRev: 1,
    op: 1,
  };
  const active = { ...created, state: "ACTIVE", visible: true };
  const told = (await tell(pet.PETS as never, [
    { ...created, pending: true },
    active,
    { ...active, intent: { op: 2, delete: true }, pending: true },
    { ...active, version: 2, status: "sold" },
    { ...created, state: "DELETED", facts: pet.NO_FACTS, endedOn: 1 },
  ])) as Change<pet.PetView>[];
  expect(brief(told)).toEqual(["created@2", "updated@4", "deleted@5"]);
  expect(told.map(({ shown }) => pet.toPet(7, shown))).toMatchObject([
    { id: 7n, etag: '"1"', name: "Rex", categoryId: 3n },
    { id: 7n, etag: '"2"', name: "Rex", categoryId: 3n },
    { id: 7n, etag: '"2"', name: "Rex", categoryId: 3n },
  ]);
});

test("an order is told from RESERVED to CANCELLED", async () => {
  const reserved = { ...record, state: "RESERVED", visible: true, petId: 3, quantity: 2, tag: "a" };
  const told = (await tell(order.ORDERS as never, [
    reserved,
    { ...reserved, tag: "b" },
    { ...record, state: "CANCELLED", endedOn: 1 },
  ])) as Change<order.OrderParams & { version: number }>[];
  expect(brief(told)).toEqual(["created@1", "deleted@3"]);
  expect(told.map(({ shown }) => order.toOrder(7, shown, shown.version))).toMatchObject([
    { id: 7n, petId: 3n, quantity: 2, complete: false, etag: '"1"' },
    { id: 7n, petId: 3n, quantity: 2, complete: false, etag: '"1"' },
  ]);
});

test("a category is told as callers see it", async () => {
  const active = { ...record, state: "ACTIVE", visible: true, name: "Dogs", op: 0 };
  const told = (await tell(category.CATEGORIES as never, [
    active,
    { ...active, version: 2, description: "bark" },
  ])) as Change<category.CategoryDoc>[];
  expect(told.map(({ shown }) => category.toCategory(7, shown, shown.version))).toEqual([
    create(CategorySchema, { id: 7n, name: "Dogs", etag: '"1"' }),
    create(CategorySchema, { id: 7n, name: "Dogs", description: "bark", etag: '"2"' }),
  ]);
});

test("an inventory entry is told by what callers see, without its reservations", async () => {
  const open = {
    ...record,
    state: "OPEN",
    visible: true,
    quantity: 5,
    status: "available",
    reserved: 0,
    sold: 0,
    received: 5,
    listing: "available",
    statusRev: 1,
    openOrders: 0,
    reservations: "",
    settled: "",
    lowWaterMark: 0,
    lastOp: { op: 0, outcome: "OK" },
  };
  const told = (await tell(inventory.INVENTORY as never, [
    open,
    { ...open, reserved: 1, reservations: ";8=1:a" },
    { ...open, version: 2, quantity: 4 },
  ])) as Change<inventory.InventoryDoc>[];
  expect(brief(told)).toEqual(["created@1", "updated@3"]);
  expect(told[1]?.shown).toEqual({ quantity: 4, status: "available", version: 2 });
  expect(inventory.toInventoryItem({ ...(told[1] as (typeof told)[0]).shown, _id: 7 })).toMatchObject({
    petId: 7n,
    quantity: 4,
    etag: '"2"',
  });
});

test("what changes told is forgotten when it is old enough, step by step", async () => {
  let now = 0;
  const clock = () => now;
  const collection = await openMemory({ clock }).collection(category.CATEGORIES);
  const active = { ...record, state: "ACTIVE", visible: true, name: "Dogs", op: 0 } as const;
  for (let version = 1; version <= 25; version++) {
    await collection.update(7, () => put({ ...active, version }, 0));
  }
  const expiry = createExpiry(RETENTION.tombstones, clock);
  const { workers } = keepingOf("category", collection, { clock, random: () => 0, retention: RETENTION, expiry });
  const worker = workers.find(({ name }) => name === "category.changes") as Worker;
  now = RETENTION.eventsMs;
  expect(await worker.run(10)).toBe(0);
  now++;
  expect(await worker.run(10)).toBe(24);
});
