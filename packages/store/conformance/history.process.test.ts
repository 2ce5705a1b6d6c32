/** Random histories: whatever is asked in whatever order, each engine answers like a plain Map. */

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realTime } from "@petstore/runtime/clock";
import fc from "fast-check";
import { expect, test } from "vitest";
import { mongodbMissing, openPlace } from "../../../test/harness/mongodb.ts";
import { dropDatabase, openForTest } from "../fixtures/mongo.ts";
import { silent } from "../fixtures/silent.ts";
import { emptyData, openMemory } from "../memory/memory.ts";
import { type Doc, type Id, keep, put, type Store, schema } from "../port.ts";
import { openEmbedded } from "../sqlite/sqlite.ts";

interface Row extends Doc {
  readonly kind?: string;
  readonly size?: number;
  readonly on?: boolean;
}
const ROWS = schema<Row>()("rows", { kind: ["kind"], shape: ["kind", "size"], on: ["on"] });
type Fields = Omit<Row, "_id" | "rev">;

/** Few ids and few values, so that histories meet themselves. */
const numbers: Id[] = [-1, 0, 1, 2, 7, 10, 2 ** 53 - 1];
const strings: Id[] = ["a", "B", "é", "\ufffd", "\u{1F600}", "1", "10"];
const kinds = ["x", "X", "", "é"];
const sizes = [-1, 0, 0.5, 2 ** 53 - 1];

const some = <T>(values: readonly T[]) => fc.uniqueArray(fc.constantFrom(...values), { maxLength: 3 });
const fields: fc.Arbitrary<Fields> = fc.record(
  { kind: fc.constantFrom(...kinds), size: fc.constantFrom(...sizes), on: fc.boolean() },
  { requiredKeys: [] },
);
const where = fc.oneof(
  fc.constant(undefined),
  fc.record({ kind: fc.oneof(fc.constantFrom(...kinds), some(kinds)) }),
  fc.record({ kind: some(kinds), size: some(sizes) }),
  fc.record({ on: fc.oneof(fc.boolean(), some([true, false])) }),
);

const operation = (ids: readonly Id[]) => {
  const id = fc.constantFrom(...ids);
  const limit = fc.integer({ min: 1, max: 4 });
  const after = fc.option(id, { nil: undefined });
  const order = fc.constantFrom("asc" as const, "desc" as const);
  return fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("put" as const), id, fields }) },
    fc.record({ do: fc.constantFrom("keep" as const, "throw" as const, "get" as const), id }),
    fc.record({ do: fc.constant("getMany" as const), ids: fc.array(id, { maxLength: 5 }) }),
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant("list" as const), query: fc.record({ where, after, order, limit }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("remove" as const), id, rev: fc.integer({ min: 1, max: 3 }) }),
    },
    fc.record({ do: fc.constantFrom("nextId" as const, "reopen" as const) }),
  );
};
type Operation = ReturnType<typeof operation> extends fc.Arbitrary<infer O> ? O : never;

const byId = (a: Row, b: Row) =>
  typeof a._id === "number" && typeof b._id === "number"
    ? a._id - b._id
    : Buffer.compare(Buffer.from(String(a._id)), Buffer.from(String(b._id)));

function model() {
  const rows = new Map<Id, Row>();
  let sequence = 0;
  return (op: Operation): unknown => {
    switch (op.do) {
      case "put": {
        const rev = (rows.get(op.id)?.rev ?? 0) + 1;
        rows.set(op.id, { ...op.fields, _id: op.id, rev });
        return rev;
      }
      case "keep":
      case "get":
        return rows.get(op.id);
      case "throw":
        return "thrown";
      case "getMany":
        return [...new Set(op.ids)].map((id) => rows.get(id)).filter((row) => row !== undefined);
      case "list": {
        const { where: asked, after, order, limit } = op.query;
        const isAsked = (row: Row) =>
          Object.entries(asked ?? {}).every(([field, value]) => [value].flat().includes(row[field as keyof Fields]));
        const all = [...rows.values()].filter(isAsked).sort(byId);
        if (order === "desc") all.reverse();
        const limitRow = { _id: after ?? 0, rev: 0 };
        const isBeyond = (row: Row) => (order === "asc" ? byId(row, limitRow) > 0 : byId(row, limitRow) < 0);
        return all.filter((row) => after === undefined || isBeyond(row)).slice(0, limit);
      }
      case "remove":
        if (rows.get(op.id)?.rev === op.rev) rows.delete(op.id);
        return undefined;
      case "nextId":
        return ++sequence;
      case "reopen":
        return undefined;
    }
  };
}

/**
 * Runs a history, everything at once between two reopenings if the engine takes it in that order. The embedded engine makes
 * changes in the order asked, and shows reads what was answered before. Of MongoDB each answer is waited for.
 */
async function play(
  open: () => Promise<Store>,
  history: readonly Operation[],
  pace: "at once" | "changes at once" | "one by one" = "at once",
): Promise<unknown[]> {
  let store = await open();
  let rows = await store.collection(ROWS);
  const ask = async (op: Operation): Promise<unknown> => {
    switch (op.do) {
      case "put":
        return rows.update(op.id, (_, rev) => put({ ...op.fields, _id: op.id }, rev));
      case "keep":
        return rows.update(op.id, (doc) => keep(doc));
      case "throw":
        return rows
          .update(op.id, () => {
            throw new Error("thrown");
          })
          .catch((error: Error) => error.message);
      case "get":
        return rows.get(op.id);
      case "getMany":
        return rows.getMany(op.ids);
      case "list":
        return rows.list(op.query as Parameters<typeof rows.list>[0]);
      case "remove":
        return rows.remove(op.id, (row) => row.rev === op.rev);
      case "nextId":
        return store.nextId("rows");
      case "reopen":
    }
  };
  const answers: Promise<unknown>[] = [];
  for (const op of history) {
    if (pace === "changes at once" && ["get", "getMany", "list"].includes(op.do)) await Promise.all(answers);
    answers.push(ask(op));
    if (pace === "one by one") await answers.at(-1);
    if (op.do !== "reopen") continue;
    await store.close();
    store = await open();
    rows = await store.collection(ROWS);
  }
  await store.close();
  return Promise.all(answers);
}

const history = fc.constantFrom(numbers, strings).chain((ids) => fc.array(operation(ids), { maxLength: 60 }));
const expected = (ops: readonly Operation[]) => ops.map(model());

test("the memory engine answers every history like a Map", { timeout: 120_000 }, async () => {
  const check = async (ops: Operation[]) => {
    const data = emptyData();
    expect(await play(async () => openMemory({ data }), ops)).toEqual(expected(ops));
  };
  await fc.assert(fc.asyncProperty(history, check), { numRuns: 300 });
});

test("the embedded engine answers every history like a Map", { timeout: 120_000 }, async () => {
  const check = async (ops: Operation[]) => {
    const dir = mkdtempSync(join(tmpdir(), "petstore-"));
    const options = { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() };
    try {
      expect(await play(() => openEmbedded(join(dir, "rows.db"), options), ops, "changes at once")).toEqual(
        expected(ops),
      );
    } finally {
      rmSync(dir, { recursive: true });
    }
  };
  await fc.assert(fc.asyncProperty(history, check), { numRuns: 100 });
});

test.skipIf(mongodbMissing)("the MongoDB engine answers every history like a Map", { timeout: 300_000 }, async () => {
  await using place = await openPlace();
  const check = async (ops: Operation[]) => {
    const service = randomBytes(6).toString("hex");
    try {
      expect(await play(() => openForTest(place.uri, service), ops, "one by one")).toEqual(expected(ops));
    } finally {
      await dropDatabase(place.uri, service);
    }
  };
  await fc.assert(fc.asyncProperty(history, check), { numRuns: 50 });
});
