/**
 * Changes of what a schema shows: delivered in order, from any position, to any number of readers, without delaying a
 * writer.
 */
import { expect } from "vitest";
import {
  type Change,
  type Changes,
  type Collection,
  type Doc,
  Expired,
  type Position,
  put,
  SlowConsumer,
  schema,
  Unavailable,
} from "../port.ts";
import { type Bench, isAt, it, type OpenSubject, range, save, wrong } from "./subject.ts";

interface Item extends Doc {
  readonly _id: number;
  readonly name: string;
  readonly kind?: string;
  readonly visible?: true;
  readonly secret?: number;
  readonly note?: string;
}
interface Shown {
  readonly name: string;
  readonly kind?: string;
}
const ITEMS = schema<Item>()(
  "items",
  { visible: ["visible"] },
  undefined,
  ({ visible, name, kind }): Shown | undefined => (visible ? { name, ...(kind && { kind }) } : undefined),
  ["kind"],
  ({ note }) => note,
);
type Items = Collection<Item, typeof ITEMS.indexes, Shown>;

const show = (items: Items, _id: number, name: string) => save(items, { _id, name, visible: true });
const hide = (items: Items, _id: number) => save(items, { _id, name: "hidden" });

/** More than an engine keeps for slow readers. */
const FLOOD = range(96).map((i) => `${i}`.padEnd(64 * 1024, "."));
const flood = async (items: Items) => {
  for (let i = 0; i < FLOOD.length; i += 8) {
    await Promise.all(FLOOD.slice(i, i + 8).map((name, n) => show(items, 1000 + i + n, name)));
  }
};

type Read = Change<Shown>[] & { readonly changes: Changes<Shown> };

/** Reads until `isEnough`, then leaves. */
async function readUntil(
  items: Items,
  after: Position | undefined,
  isEnough: (read: readonly Change<Shown>[]) => boolean,
): Promise<Read> {
  const stop = new AbortController();
  const changes = await items.changes({ after, signal: stop.signal });
  const read: Change<Shown>[] = [];
  for await (const batch of changes) {
    expect(batch.length).toBeGreaterThan(0);
    read.push(...batch);
    expect(changes.position >= (read.at(-1)?.position ?? "")).toBe(true);
    if (isEnough(read)) stop.abort();
  }
  return Object.assign(read, { changes });
}
const readCount = (items: Items, after: Position | undefined, count: number) =>
  readUntil(items, after, ({ length }) => length >= count);
const toName = (name: string) => (read: readonly Change<Shown>[]) => read.at(-1)?.shown.name === name;

const brief = (read: readonly Change<Shown>[]) =>
  read.map(({ type, _id, rev, shown }) => `${type} ${_id}@${rev} ${shown.name}`);

/** The current position. */
async function now(items: Items): Promise<Position> {
  const stop = new AbortController();
  const { position } = await items.changes({ signal: stop.signal });
  stop.abort();
  return position;
}

const error = (promise: Promise<unknown>) => promise.catch((reason: unknown) => reason);
const withItems = (open: OpenSubject, promise: string, run: (bench: Bench, items: Items) => Promise<void>) =>
  it(open, promise, async (bench) => run(bench, await bench.store.collection(ITEMS)));

export function changes(open: OpenSubject): void {
  withItems(
    open,
    "what becomes visible is created, what changes is updated, what is hidden is deleted",
    async (_, items) => {
      const begin = await now(items);
      await hide(items, 1);
      await show(items, 1, "a");
      await show(items, 1, "b");
      await save(items, { _id: 1, name: "b", visible: true, secret: 1 });
      await hide(items, 1);
      await hide(items, 1);
      await items.remove(1, isAt(6));
      await show(items, 2, "c");
      const read = await readUntil(items, begin, toName("c"));
      expect(brief(read)).toEqual(["created 1@2 a", "updated 1@3 b", "deleted 1@5 b", "created 2@1 c"]);
      for (const change of read) {
        expect(Number.isSafeInteger(change.time)).toBe(true);
        expect(Object.isFrozen(change) && Object.isFrozen(change.shown)).toBe(true);
      }
    },
  );

  withItems(open, "a change of a tracked member tells what it was, now and later", async (_, items) => {
    const begin = await now(items);
    const live = readCount(items, begin, 6);
    const made: Partial<Item>[] = [{}, { kind: "dog" }, { kind: "dog", secret: 1 }, { kind: "cat" }, { name: "b" }];
    for (const item of made) await save(items, { _id: 1, name: "a", visible: true, ...item });
    await save(items, { _id: 1, name: "c", visible: true });
    await hide(items, 1);
    const expected = [
      ["created", undefined],
      ["updated", {}],
      ["updated", { kind: "dog" }],
      ["updated", { kind: "cat" }],
      ["updated", undefined],
      ["deleted", undefined],
    ];
    expect((await live).map(({ type, former }) => [type, former])).toEqual(expected);
    expect((await readCount(items, begin, 6)).map(({ type, former }) => [type, former])).toEqual(expected);
  });

  withItems(open, "a change has what its document notes of it, which by itself makes none", async (_, items) => {
    const begin = await now(items);
    const live = readCount(items, begin, 4);
    const item = { _id: 1, name: "a", visible: true } as const;
    await save(items, { ...item, note: "first" });
    await save(items, { ...item, note: "second" });
    await save(items, { ...item, name: "b", note: "third" });
    await save(items, { ...item, name: "c" });
    await save(items, { _id: 1, name: "hidden", note: "last" });
    const expected = [
      ["created", "first"],
      ["updated", "third"],
      ["updated", undefined],
      ["deleted", "last"],
    ];
    expect((await live).map(({ type, noted }) => [type, noted])).toEqual(expected);
    expect((await readCount(items, begin, 4)).map(({ type, noted }) => [type, noted])).toEqual(expected);
  });

  withItems(
    open,
    "who waits is told of each change as it is made, and of none that was made before",
    async (_, items) => {
      await show(items, 1, "before");
      const stop = new AbortController();
      const told = (await items.changes({ signal: stop.signal }))[Symbol.asyncIterator]();
      for (const name of ["a", "b", "c"]) {
        const next = told.next();
        await show(items, 1, name);
        expect((await next).value?.map(({ shown }: Change<Shown>) => shown.name)).toEqual([name]);
      }
      const end = told.next();
      stop.abort();
      expect(await end).toEqual({ done: true, value: undefined });
    },
  );

  withItems(open, "from each position follow exactly the changes after it", async (_, items) => {
    const begin = await now(items);
    for (const i of range(30)) await Promise.all([show(items, i % 3, `${i}`), show(items, 3 + (i % 5), `${i}`)]);
    const all = await readCount(items, begin, 60);
    expect(new Set(all.map(({ position }) => position)).size).toBe(60);
    expect(all.map(({ position }) => position)).toEqual(all.map(({ position }) => position).toSorted());
    for (const [i, { position }] of all.entries()) {
      if (i === all.length - 1) continue;
      expect(brief(await readCount(items, position, 59 - i))).toEqual(brief(all.slice(i + 1)));
    }
    for (const id of range(8)) {
      const revs = all.filter(({ _id }) => _id === id).map(({ rev }) => rev);
      expect(revs).toEqual(range(revs.length, 1));
    }
  });

  withItems(
    open,
    "what a get shows is told, under many writers, and a snapshot has no gap to what follows",
    async (_, items) => {
      const ids = range(6);
      const seen = new Set<string>();
      const begin = await now(items);
      const write = async (writer: number) => {
        for (const i of range(40)) await show(items, ids[(writer + i) % ids.length] as number, `${writer}.${i}`);
      };
      const look = async () => {
        for (const i of range(60)) {
          const doc = await items.get(i % ids.length);
          if (doc) seen.add(`${doc._id}@${doc.rev} ${doc.name}`);
        }
      };
      const copies: Map<number, Item | Change<Shown>>[] = [];
      const copy = async () => {
        const stop = new AbortController();
        const changes = await items.changes({ signal: stop.signal });
        const state = new Map<number, { rev: number; name: string }>();
        const listed = await items.list({ where: { visible: true }, limit: 99, order: "asc" });
        for (const { _id, rev, name } of listed) state.set(_id, { rev, name });
        copies.push(state as never);
        for await (const batch of changes) {
          for (const { _id, rev, shown } of batch) {
            if (rev > (state.get(_id as number)?.rev ?? 0)) state.set(_id as number, { rev, name: shown.name });
          }
          if (state.has(99)) stop.abort();
        }
      };
      const writers = range(6).map(write);
      const copying = [copy()];
      await look();
      copying.push(copy(), copy());
      await Promise.all([...writers, look()]);
      await show(items, 99, "end");
      await Promise.all(copying);
      const docs = await items.list({ limit: 99, order: "asc" });
      const state = new Map(docs.map(({ _id, rev, name }) => [_id, { rev, name }]));
      expect(copies.map((copied) => new Map([...copied].toSorted(([a], [b]) => a - b)))).toEqual([state, state, state]);

      const told = await readUntil(items, begin, toName("end"));
      const all = told.map(({ _id, rev, shown }) => `${_id}@${rev} ${shown.name}`);
      expect([...seen].filter((one) => !all.includes(one))).toEqual([]);
      for (const id of ids) {
        const revs = told.filter(({ _id }) => _id === id).map(({ rev }) => rev);
        expect(revs).toEqual([...new Set(revs)].toSorted((a, b) => a - b));
        expect(revs.at(-1)).toBe(state.get(id)?.rev);
      }
    },
  );

  withItems(open, "two who read are told the same, and one that leaves does not end the other", async (_, items) => {
    const begin = await now(items);
    const one = readCount(items, begin, 10);
    const two = readCount(items, begin, 30);
    for (const i of range(30)) await show(items, 1, `${i}`);
    expect(brief((await one).slice(0, 10))).toEqual(brief((await two).slice(0, 10)));
    expect((await two).map(({ rev }) => rev)).toEqual(range(30, 1));
  });

  withItems(open, "who is too slow is ended, no writer waits for it, and it goes on where it was", async (_, items) => {
    const stop = new AbortController();
    const changes = await items.changes({ signal: stop.signal });
    const slow = changes[Symbol.asyncIterator]();
    const first = slow.next();
    await show(items, 1, "first");
    await first;
    await flood(items);
    await show(items, 2, "last");
    const ended = await error(
      (async () => {
        for (;;) await slow.next();
      })(),
    );
    expect(ended).toBeInstanceOf(SlowConsumer);
    const { position } = ended as SlowConsumer;
    expect(position).toBe(changes.position);
    const rest = await readUntil(items, position, toName("last"));
    expect(new Set(rest.map(({ shown }) => shown.name))).toEqual(new Set([...FLOOD, "last"]));
  });

  withItems(open, "who makes a snapshot first misses nothing, however much is changed meanwhile", async (_, items) => {
    const stop = new AbortController();
    const changes = await items.changes({ signal: stop.signal });
    await flood(items);
    const names = new Set<string>();
    for await (const batch of changes) {
      for (const { shown } of batch) names.add(shown.name);
      if (names.size === FLOOD.length) stop.abort();
    }
    expect(names).toEqual(new Set(FLOOD));
  });

  withItems(open, "opened again it goes on from every position, also with what nobody read", async (bench, items) => {
    const begin = await now(items);
    await show(items, 1, "a");
    const [{ position }] = (await readCount(items, begin, 1)) as unknown as [Change<Shown>];
    await show(items, 1, "b");
    await hide(items, 1);
    const again = await (await bench.reopen()).collection(ITEMS);
    await show(again, 2, "c");
    const rest = ["updated 1@2 b", "deleted 1@3 b", "created 2@1 c"];
    expect(brief(await readCount(again, position, 3))).toEqual(rest);
    expect(brief(await readCount(again, begin, 4))).toEqual(["created 1@1 a", ...rest]);
  });

  withItems(
    open,
    "a position has expired when what follows is forgotten, which the last change never is",
    async (bench, items) => {
      const begin = await now(items);
      for (const i of range(5)) await show(items, 1, `${i}`);
      const old = (await readCount(items, begin, 5)).map(({ position }) => position);
      bench.setTime(5000);
      await show(items, 1, "later");
      const last = await now(items);
      const counts = [await items.forgetChanges(2000, 3), await items.forgetChanges(9000, 99)];
      expect(counts).toEqual(bench.forget ? [0, 0] : [3, 2]);
      for (const after of bench.forget ? old.map(bench.forget) : [begin, ...old])
        expect(await error(readCount(items, after, 1))).toBeInstanceOf(Expired);
      await show(items, 1, "latest");
      expect(brief(await readCount(items, last, 1))).toEqual(["updated 1@7 latest"]);
    },
  );

  withItems(open, "a position is good for as long after the next change as a change is kept", async (bench, items) => {
    for (const i of range(3)) await show(items, 1, `${i}`);
    const waiting = await now(items); // handed out until the next change
    bench.setTime(5000);
    await show(items, 1, "later");
    expect(await items.forgetChanges(5000, 99)).toBe(bench.forget ? 0 : 2);
    expect(brief(await readCount(items, waiting, 1))).toEqual(["updated 1@4 later"]);
    bench.setTime(9000);
    await show(items, 1, "latest");
    expect(await items.forgetChanges(5001, 99)).toBe(bench.forget ? 0 : 1);
    if (!bench.forget) expect(await error(readCount(items, waiting, 1))).toBeInstanceOf(Expired);
  });

  withItems(open, "a position that was never given is refused", async (_, items) => {
    await show(items, 1, "a");
    const known = await now(items);
    const others = [
      "",
      "x",
      "0",
      "é",
      "0".repeat(5000),
      "f".repeat(64),
      "82FFFFFF0000000001",
      `82${"F".repeat(40)}`,
      `${known}0`,
      known.slice(1),
      known.toUpperCase() + known,
    ];
    for (const after of others) {
      expect(await error(readCount(items, after, 1)), after.slice(0, 99)).toBeInstanceOf(Expired);
    }
    expect(await error(readCount(items, wrong({}), 1))).toBeInstanceOf(Expired);
  });

  withItems(open, "who waits while nothing happens has a position to go on from", async (_, items) => {
    const stop = new AbortController();
    const changes = await items.changes({ signal: stop.signal });
    const end = changes[Symbol.asyncIterator]().next();
    await show(items, 1, "a");
    expect((await end).done).toBe(false);
    stop.abort();
    await show(items, 1, "b");
    const { position } = changes;
    expect(brief(await readCount(items, position, 1))).toEqual(["updated 1@2 b"]);
  });

  withItems(open, "close ends all who read, and refuses others", async (bench, items) => {
    const { signal } = new AbortController();
    const changes = await items.changes({ signal });
    const end = changes[Symbol.asyncIterator]().next();
    await bench.store.close();
    expect(await end).toEqual({ done: true, value: undefined });
    const refused = await error(items.changes({ signal }));
    expect(refused).toBeInstanceOf(Unavailable);
    expect(refused).toMatchObject({ inDoubt: false });
  });

  withItems(open, "a signal that has aborted before tells nothing", async (_, items) => {
    const begin = await now(items);
    await show(items, 1, "a");
    const changes = await items.changes({ after: begin, signal: AbortSignal.abort() });
    expect(await changes[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  });

  it(open, "of a schema that shows nothing no changes are told", async ({ pets }) => {
    await expect(pets.changes({ signal: new AbortController().signal })).rejects.toThrow(TypeError);
    await expect(pets.forgetChanges(0, 1)).rejects.toThrow(TypeError);
  });

  withItems(
    open,
    "several changes that are stored as one are told as one, of what was stored before",
    async (_, items) => {
      const begin = await now(items);
      const rename = (name: string) => items.update(1, () => put({ _id: 1, name, visible: true }, name));
      await Promise.all([rename("a"), rename("b"), items.update(1, () => put({ _id: 1, name: "b" }, 0)), rename("c")]);
      await hide(items, 1);
      const read = await readUntil(items, begin, ([...all]) => all.at(-1)?.type === "deleted" && all.at(-1)?.rev === 5);
      expect(brief(read).at(0)).toMatch(/^created/);
      expect(brief(read).slice(-2)).toEqual([
        read.length > 2 ? expect.stringMatching(/1@4 c/) : "created 1@4 c",
        "deleted 1@5 c",
      ]);
    },
  );
}
