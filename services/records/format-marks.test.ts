import * as s from "@petstore/store/document-schema";
import { type Infer, put, schema } from "@petstore/store/port";
import { expect, test } from "vitest";
import { emptyData, openMemory } from "../../packages/store/memory/memory.ts";
import { withFormats } from "./format-marks.ts";
import { FORMAT_MARKS, type Formats } from "./formats.ts";
import { documentAfter } from "./record.ts";

const oldSchema = s.object({ _id: s.int, rev: s.int, format: s.literal([2]), price: s.int });
/** Format 3 has the price in cents, under another name. */
const newSchema = s.object({ _id: s.int, rev: s.int, format: s.literal([2, 3]), cents: s.int });
type Old = Infer<typeof oldSchema>;
type New = Infer<typeof newSchema>;
const OLD = { ...schema<Old>()("goods", {}, oldSchema, ({ price }) => ({ price })), formats: { newest: 2 } };
const NEW = {
  ...schema<New>()("goods", {}, newSchema, ({ cents }) => ({ price: cents / 100 })),
  formats: {
    newest: 3,
    change: {
      upgrade: ({ price, ...rest }: Old) => ({ ...rest, cents: Number(price.toFixed(2)) * 100 }),
      downgrade: ({ cents, ...rest }: New) => ({ ...rest, price: cents / 100 }),
    },
  } satisfies Formats,
};

/** Format 4 says which currency that is. */
const latestSchema = s.object({ _id: s.int, rev: s.int, format: s.literal([3, 4]), cents: s.int, currency: s.string });
type Latest = Infer<typeof latestSchema>;
const LATEST = {
  ...schema<Latest>()("goods", {}, latestSchema),
  formats: {
    newest: 4,
    change: {
      upgrade: (doc: New) => ({ ...doc, currency: "EUR" }),
      downgrade: ({ currency: _, ...doc }: Latest) => doc,
    },
  } satisfies Formats,
};

/** The data of a service, and processes of both versions. */
function data() {
  const stored = emptyData();
  let now = 1_800_000_000_000;
  const open = (version: string, rest: () => void = () => {}) =>
    withFormats(openMemory({ data: stored }), {
      ...{ service: "shop", version },
      ...{ clock: () => now, random: () => 0, sleep: async () => rest() },
    });
  return {
    open,
    advance: (ms: number) => {
      now += ms;
    },
    async older() {
      const { store, worker } = open("1.0.0");
      return { worker, goods: await store.collection(OLD) };
    },
    async newer(rest?: () => void) {
      const { store, worker, raise } = open("1.1.0", rest);
      return { worker, raise, goods: await store.collection(NEW) };
    },
    /** As it is stored. */
    raw: async (_id: number) => (await openMemory({ data: stored }).collection(schema<Old>()("goods", {}))).get(_id),
    putRaw: async (doc: Old) =>
      (await openMemory({ data: stored }).collection(schema<Old>()("goods", {}))).update(doc._id, () =>
        put(doc, undefined),
      ),
    setMark: async (mark: { format: number; by: string; done?: true }) =>
      (await openMemory({ data: stored }).collection(FORMAT_MARKS)).update("goods", () =>
        put({ _id: "goods", ...mark }, undefined),
      ),
    mark: async () =>
      (await openMemory({ data: stored }).collection(schema<Old>()("formats", {}))).get("goods" as never),
  };
}
const oldOf = (_id: number, price: number) => ({ _id, format: 2 as const, price });
const newOf = (_id: number, cents: number) => ({ _id, format: 3 as const, cents });

test("both versions read what either has written, until the mark is raised", async () => {
  const { older, newer, raw } = data();
  const [{ goods: old }, { goods }] = [await older(), await newer()];
  await old.update(1, () => put(oldOf(1, 5), undefined));
  expect(await goods.get(1)).toMatchObject({ cents: 500 });
  const after = await goods.update(
    1,
    documentAfter((doc) => put({ ...(doc as New), cents: 700 }, undefined)),
  );
  expect(after).toMatchObject({ cents: 700, rev: 2 });
  await goods.update(2, () => put(newOf(2, 900), undefined));
  expect(await old.getMany([1, 2])).toMatchObject([{ price: 7 }, { price: 9 }]);
  expect(await raw(2)).toEqual({ _id: 2, rev: 1, format: 2, price: 9 });
  expect(await goods.list({ limit: 9, order: "asc" })).toMatchObject([{ cents: 700 }, { cents: 900 }]);
  await goods.remove(2, ({ cents }) => cents === 900);
  expect(await raw(2)).toBeUndefined();
});

test("once it is raised, others hear of it, and what is old is rewritten when all have; nobody is told of a change", async () => {
  const { older, newer, raw, advance, mark } = data();
  const { goods: old } = await older();
  for (let id = 1; id <= 250; id++) await old.update(id, () => put(oldOf(id, id), undefined));
  const [first, second] = [await newer(), await newer()];
  const changes = await first.goods.changes({ signal: AbortSignal.timeout(60_000) });
  await first.raise();
  expect(await first.worker.run(100)).toBe(0);
  expect(await second.worker.run(100)).toBe(0);
  await second.goods.update(1_000, () => put(newOf(1_000, 5), undefined));
  expect(await raw(1_000)).toMatchObject({ format: 3, cents: 5 });
  expect(await raw(7)).toMatchObject({ format: 2, price: 7 });
  advance(10_000);
  expect(await first.worker.run(100)).toBe(250);
  expect(await raw(250)).toEqual({ _id: 250, rev: 2, format: 3, cents: 25_000 });
  expect(await mark()).toMatchObject({ format: 3, by: "1.1.0", done: true });
  for (const { worker } of [first, second]) expect(await worker.run(100)).toBe(0);
  await first.goods.update(2_000, () => put(newOf(2_000, 5), undefined));
  const { value } = await changes[Symbol.asyncIterator]().next();
  expect(value).toMatchObject([{ _id: 2_000, shown: { price: 0.05 } }]);
});

test("a worker that is stopped, or whose process has ended, is gone on with where it was", async () => {
  const { older, newer, raw, advance, mark } = data();
  const { goods: old } = await older();
  for (let id = 1; id <= 250; id++) await old.update(id, () => put(oldOf(id, id), undefined));
  const stop = new AbortController();
  const first = await newer(() => stop.abort());
  await first.raise();
  advance(10_000);
  expect(await first.worker.run(100, stop.signal)).toBe(100);
  expect(await mark()).toMatchObject({ after: 100 });
  await old.update(0, () => put(oldOf(0, 1), undefined)); // behind it
  await first.raise(); // asked for again
  const second = await newer();
  advance(10_000);
  expect(await second.worker.run(100)).toBe(150);
  expect([await raw(0), await raw(101)]).toMatchObject([{ format: 2 }, { format: 3 }]);
});

test("what was written in the old format behind the worker's back is found when it is asked for again", async () => {
  const { newer, raw, advance } = data();
  const [first, late] = [await newer(), await newer()];
  await first.raise();
  advance(10_000);
  await first.worker.run(100);
  await late.goods.update(1, () => put(newOf(1, 500), undefined)); // it has not heard yet
  expect(await raw(1)).toMatchObject({ format: 2 });
  await first.raise();
  expect(await first.worker.run(100)).toBe(1);
  expect(await raw(1)).toMatchObject({ format: 3 });
});

test("what another process has rewritten stays so, even for one that has not heard of it", async () => {
  const { newer, raw } = data();
  const [first, late] = [await newer(), await newer()];
  await first.raise();
  await first.goods.update(1, () => put(newOf(1, 500), undefined));
  await late.goods.update(1, (doc) => put({ ...(doc as New), cents: 600 }, undefined));
  expect(await raw(1)).toMatchObject({ format: 3, cents: 600 });
});

test("an older version neither goes on nor starts, and says what to do", async () => {
  const { older, newer } = data();
  const running = await older();
  await running.worker.run(100);
  await (await newer()).raise();
  const words =
    /^1\.1\.0 .* the format of shop's goods to 3 .* this is 1\.0\.0, .*: start 1\.1\.0, or restore the backup/;
  for (const refused of [running.worker.run(100), older()])
    await expect(refused).rejects.toMatchObject({ name: "UnsupportedFormat", message: expect.stringMatching(words) });
  await expect(newer()).resolves.toBeDefined();
});

test("the version after starts once all are of the format before", async () => {
  const { older, newer, raw, advance, open } = data();
  const { goods: old } = await older();
  await old.update(1, () => put(oldOf(1, 5), undefined));
  const latest = () => open("1.2.0").store.collection(LATEST);
  const refusal = (message: RegExp) => ({ name: "UnsupportedFormat", message: expect.stringMatching(message) });
  await expect(latest()).rejects.toMatchObject(
    refusal(/^shop's goods are written in format 2, and 1\.2\.0 reads none below 3: start the version before/),
  );
  const first = await newer();
  await first.raise();
  await expect(latest()).rejects.toMatchObject(
    refusal(/^1\.1\.0 .* has not come to its end, and 1\.2\.0 .*: start 1\.1\.0/),
  );
  advance(10_000);
  await first.worker.run(100);
  const goods = await latest();
  expect(await goods.get(1)).toMatchObject({ cents: 500, currency: "EUR" });
  await goods.update(1, (doc) => put(doc as Latest, undefined));
  expect(await raw(1)).toEqual({ _id: 1, rev: 3, format: 3, cents: 500 });
});

test("a document that is two formats old is read as damaged", async () => {
  const { open, putRaw, setMark } = data();
  await setMark({ format: 3, by: "1.1.0", done: true });
  const goods = await open("1.2.0").store.collection(LATEST);
  await putRaw({ ...oldOf(1, 5), cents: 5 } as never);
  await expect(goods.get(1)).rejects.toMatchObject({ name: "Corrupt" });
});

test("a version that hears in its work of a later format goes no further, and does not write in it", async () => {
  const { newer, raw, advance, setMark } = data();
  const first = await newer(() => setMark({ format: 4, by: "1.2.0" }));
  for (let id = 1; id <= 250; id++) await first.goods.update(id, () => put(newOf(id, 5), undefined));
  await first.raise();
  advance(10_000);
  await expect(first.worker.run(100)).rejects.toMatchObject({ name: "UnsupportedFormat" });
  await first.goods.update(7, (doc) => put(doc as New, undefined));
  expect(await raw(7)).toMatchObject({ format: 3 });
  await expect(first.raise()).rejects.toMatchObject({ name: "UnsupportedFormat" });
});

test("a document of neither format is damaged, and harms only itself", async () => {
  const { older, newer } = data();
  const [{ goods: old }, { goods }] = [await older(), await newer()];
  await old.update(1, () => put({ _id: 1, format: 2 } as Old, undefined));
  await old.update(2, () => put(oldOf(2, 9), undefined));
  await expect(goods.get(1)).rejects.toMatchObject({ name: "Corrupt" });
  expect(await goods.list({ limit: 9, order: "asc" })).toMatchObject([{ _id: 2 }]);
});
