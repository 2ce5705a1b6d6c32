import { setImmediate as nextTurn } from "node:timers/promises";
import * as s from "@petstore/store/document-schema";
import { type Infer, put, type Schema, type Store, schema } from "@petstore/store/port";
import { expect, test } from "vitest";
import { emptyData, openMemory } from "../../packages/store/memory/memory.ts";
import { createNameSearch, MARKS, namedSchema, withFoldedName } from "./folded-names.ts";
import { FORMAT } from "./record.ts";
import { withCaller } from "./sagas.ts";

const recordSchema = s.object({ ...namedSchema.fields, name: s.string });
type RecordDoc = Infer<typeof recordSchema>;
const RECORDS = schema<RecordDoc>()(
  "records",
  { visible: ["visible"], name: ["foldedName"] },
  recordSchema,
  ({ name }) => ({ name }),
);
const nameOf = ({ name }: Pick<RecordDoc, "name">) => name;
const DAY_MS = 86_400_000;

/** The data of a service, some processes of it, and one of before there were folded names. */
function data() {
  const stored = emptyData();
  let now = 1_800_000_000_000;
  const call = { deadline: Number.POSITIVE_INFINITY, requestId: "r", caller: "ann", progress: { hasBegun: false } };
  const record = (_id: number, name: string) =>
    ({ _id, name, version: 1, visible: true, format: FORMAT }) as const satisfies Omit<RecordDoc, "rev">;
  return {
    call,
    record,
    advance: (ms: number) => {
      now += ms;
    },
    async process() {
      let lists = 0;
      const store: Store = openMemory({ data: stored });
      const opened = await store.collection(RECORDS);
      const counted: typeof opened = {
        ...opened,
        list(query, options) {
          lists++;
          return opened.list(query, options);
        },
      };
      const records = withCaller(withFoldedName(counted, nameOf));
      const deps = { clock: () => now, random: () => 0, sleep: () => nextTurn() };
      const search = createNameSearch("records.names", records, nameOf, await store.collection(MARKS), deps);
      return {
        records,
        worker: search.worker,
        lists: () => lists,
        find: async (prefix: string) =>
          (await search.list({ prefix, after: undefined, limit: 1_000 }, call)).map(({ _id }) => _id),
      };
    },
    /** Stores records as a version without folded names does: it keeps members that it does not know. */
    async older() {
      const old = await openMemory({ data: stored }).collection({ ...RECORDS, indexes: {} } as Schema<
        RecordDoc,
        never
      >);
      return {
        store: (_id: number, name: string) =>
          old.update(_id, (doc) => put({ ...doc, ...record(_id, name) } as RecordDoc, undefined)),
        get: (_id: number) => old.get(_id),
      };
    },
  };
}

test("a visible record carries its folded name, another one none", async () => {
  const { process, call, record } = data();
  const { records, find } = await process();
  await records.update(1, () => put(record(1, "Rex"), undefined), call);
  expect(await records.get(1)).toMatchObject({ name: "Rex", foldedName: "rex" });
  expect(await find("re")).toEqual([1]);
  await records.update(1, (doc) => put({ ...(doc as RecordDoc), name: "MAX" }, undefined), call);
  expect([await find("re"), await find("max")]).toEqual([[], [1]]);
  await records.update(1, (doc) => put({ ...(doc as RecordDoc), visible: undefined }, undefined), call);
  expect(await records.get(1)).not.toHaveProperty("foldedName");
  expect(await find("max")).toEqual([]);
});

test("a few records of before are found at once", async () => {
  const { process, older } = data();
  const old = await older();
  for (let id = 1; id < 100; id++) await old.store(id, "Rex");
  const { find } = await process();
  expect(await find("REX".toLowerCase())).toHaveLength(99);
});

test("with many, a search is refused until the worker has gone through all", async () => {
  const { process, older, call } = data();
  const old = await older();
  for (let id = 1; id <= 250; id++) await old.store(id, `Rex ${id}`);
  const first = await process();
  const changes = await first.records.changes({ signal: AbortSignal.timeout(60_000), ...call });
  for (let round = 0; round < 3; round++)
    await expect(first.find("rex")).rejects.toMatchObject({ reason: "UNAVAILABLE" });
  expect(await first.worker.run(100)).toBe(150);
  expect(await first.find("rex")).toHaveLength(250);
  // Nobody sees that the worker was there.
  expect(await old.get(250)).toMatchObject({ version: 1, rev: 2 });
  await first.records.update(7, (doc) => put({ ...(doc as RecordDoc), name: "Max" }, undefined), call);
  const { value } = await changes[Symbol.asyncIterator]().next();
  expect(value).toMatchObject([{ _id: 7, shown: { name: "Max" } }]);
});

test("a worker that is stopped begins no further batch, and does not say that it was done", async () => {
  const { process, older } = data();
  const old = await older();
  for (let id = 1; id <= 250; id++) await old.store(id, "Rex");
  const { worker, find } = await process();
  const stop = new AbortController();
  const run = worker.run(100, stop.signal);
  stop.abort();
  expect(await run).toBeLessThan(250);
  await expect(find("rex")).rejects.toMatchObject({ reason: "UNAVAILABLE" });
});

test("a day later all records are gone through once more, for processes of before that ran meanwhile; then never again", async () => {
  const { process, older, advance } = data();
  const old = await older();
  const [first, second] = [await process(), await process()];
  expect(await Promise.all([first, second].map(({ worker }) => worker.run(100)))).toEqual([0, 0]);
  await old.store(1, "Rex");
  expect(await first.find("rex")).toEqual([]);
  advance(DAY_MS / 2);
  for (const { worker } of [first, second]) expect(await worker.run(100)).toBe(0);
  expect(await first.find("rex")).toEqual([]);
  advance(DAY_MS / 2);
  expect(await second.worker.run(100)).toBe(1);
  expect(await first.find("rex")).toEqual([1]);
  await first.worker.run(100);
  const counts = [first.lists(), second.lists()];
  advance(10 * DAY_MS);
  const third = await process();
  for (const { worker } of [first, second, third]) expect(await worker.run(100)).toBe(0);
  expect([first.lists(), second.lists(), third.lists()]).toEqual([...counts, 0]);
});
