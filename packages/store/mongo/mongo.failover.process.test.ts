/** Three members, and the primary is killed or stopped under load: nothing answered is lost, nothing is done twice, service resumes. */
import { setTimeout as sleep } from "node:timers/promises";
import { realTime } from "@petstore/runtime/clock";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../../../test/harness/mongod.ts";
import { range } from "../conformance/subject.ts";
import { openForTest } from "../fixtures/mongo.ts";
import { type Change, type Doc, type Position, put, type Store, schema, Unavailable } from "../port.ts";

interface Ledger extends Doc {
  readonly _id: number;
  /** The number of each increment that was made, in the order made. */
  readonly made: readonly number[];
}
const LEDGERS = schema<Ledger>()("ledgers", {}, undefined, ({ made }) => ({ count: made.length, last: made.at(-1) }));
const DOCUMENTS = 4;
/** A ledger that is written when all is over. */
const LAST = 99;
/** What happens to the primary, one after the other. A stopped one goes on as if it were still the primary. */
const BLOWS = ["SIGKILL", "SIGSTOP", "SIGKILL", "SIGSTOP"] as const;

/** What one process asked for, and what it was told. */
interface History {
  readonly answered: { readonly id: number; readonly number: number; readonly count: number }[];
  readonly doubted: Set<number>;
  readonly refused: Set<number>;
  readonly reads: { readonly id: number; readonly before: number; readonly seen: number }[];
  readonly taken: number[];
}

/** How often increments were answered, and how often each document was read. */
interface Progress {
  answers: number;
  readonly reads: number[];
}

describe.skipIf(mongodMissing)("when the primary is killed or stopped", () => {
  let set: ReplicaSet;
  beforeAll(async () => {
    set = await startReplicaSet({ members: 3 });
  });
  afterAll(() => set?.stop());

  test("no answered increment is lost, none is made twice, and service resumes", { timeout: 300_000 }, async () => {
    const stop = new AbortController();
    const stores = [await openForTest(set.uri, "failover"), await openForTest(set.uri, "failover")];
    const progress: Progress = { answers: 0, reads: range(DOCUMENTS).map(() => 0) };
    const watchers = await Promise.all([watch(stores.slice(0, 1)), watch(stores.slice(1)), watch(stores)]);
    const runs = stores.map((store, i) => load(store, 1_000_000 * (i + 1), progress, stop.signal));

    const resumed = async () => {
      const { answers, reads } = structuredClone(progress);
      const isEnough = () =>
        progress.answers >= answers + 200 && progress.reads.every((count, id) => count >= (reads[id] ?? 0) + 30);
      while (!isEnough()) await sleep(20);
    };
    await resumed();
    for (const [i, blow] of BLOWS.entries()) {
      const primary = await set.primary();
      primary.signal(blow);
      // Waits without limit of its own: were service never to resume, the test would run out of time.
      await resumed();
      // With a member down a start gets through as well, also one that has to build an index.
      const late = await openForTest(set.uri, "failover");
      await late.collection(schema<Ledger & { readonly [field: string]: number }>()("ledgers", { [i]: [`late${i}`] }));
      await late.close();
      if (blow === "SIGSTOP") primary.signal("SIGCONT");
      else await primary.restart();
    }
    stop.abort();
    const histories = await Promise.all(runs);
    await (await stores[0]?.collection(LEDGERS))?.update(LAST, () => put({ _id: LAST, made: [0] }, 0));
    const told = await Promise.all(watchers.map((watcher) => watcher.told));
    for (const store of stores) await store.close();
    await verify(histories);
    for (const one of told) await verifyTold(one, histories);
  });

  /** What was told is what was made, and what reads showed is among it: through all elections. */
  async function verifyTold(told: readonly Told[], histories: readonly History[]): Promise<void> {
    const store = await openForTest(set.uri, "failover");
    const ledgers = await (await store.collection(LEDGERS)).getMany(range(DOCUMENTS));
    await store.close();
    for (const { _id, rev, made } of ledgers) {
      const changes = told.filter((change) => change._id === _id);
      const revs = changes.map((change) => change.rev);
      expect(revs, "told in the order of its revisions").toEqual(revs.toSorted((a, b) => a - b));
      expect(revs.at(-1), "told to the end").toBe(rev);
      const invented = changes.filter(({ shown: { count, last } }) => made[count - 1] !== last);
      expect(invented, "told and not made").toEqual([]);
      const counts = new Set(changes.map(({ shown }) => shown.count));
      const reads = histories.flatMap((history) => history.reads).filter(({ id, seen }) => id === _id && seen > 0);
      expect(reads.length).toBeGreaterThan(100);
      const untold = reads.filter(({ seen }) => !counts.has(seen));
      expect(untold, "read and not told").toEqual([]);
    }
  }

  async function verify(histories: readonly History[]): Promise<void> {
    const store = await openForTest(set.uri, "failover");
    const ledgers = await (await store.collection(LEDGERS)).getMany(range(DOCUMENTS));
    await store.close();
    const made = ledgers.flatMap(({ made }) => made);
    const answered = histories.flatMap(({ answered }) => answered);
    const doubted = new Set(histories.flatMap(({ doubted }) => [...doubted]));
    const refused = new Set(histories.flatMap(({ refused }) => [...refused]));
    const places = new Map(
      ledgers.flatMap(({ _id, made }) => made.map((number, i) => [number, { _id, count: i + 1 }])),
    );

    expect(answered.length).toBeGreaterThan(200 * BLOWS.length);
    expect(made.length - new Set(made).size, "made twice").toBe(0);
    const wrong = answered.filter(({ id, number, count }) => {
      const place = places.get(number);
      return place?._id !== id || place.count !== count;
    });
    expect(wrong, "lost, or answered with a count that it did not make").toEqual([]);
    const known = new Set([...answered.map(({ number }) => number), ...doubted]);
    expect(
      made.filter((number) => !known.has(number)),
      "made though refused",
    ).toEqual([]);
    expect(
      made.filter((number) => refused.has(number)),
      "made though refused",
    ).toEqual([]);
    expect(ledgers.map(({ rev, made }) => rev <= made.length)).toEqual(ledgers.map(() => true));

    const stale = histories.flatMap(({ reads }) => reads.filter(({ before, seen }) => seen < before));
    expect(stale, "reads that miss what was answered before").toEqual([]);
    const taken = histories.flatMap(({ taken }) => taken);
    expect(taken.length - new Set(taken).size, "numbers taken twice").toBe(0);
  }
});

type Told = Change<{ readonly count: number; readonly last: number | undefined }>;

/**
 * Reads the changes that follow its own answer, each hundred of them at the next of the stores, until the last ledger is
 * written.
 */
async function watch(stores: readonly Store[]): Promise<{ readonly told: Promise<Told[]> }> {
  const open = async (turn: number, after?: Position) => {
    const stop = new AbortController();
    const ledgers = await (stores[turn % stores.length] as Store).collection(LEDGERS);
    const deadline = realTime.clock() + 60_000;
    return { stop, changes: await ledgers.changes({ after, signal: stop.signal, deadline }) };
  };
  const read = async ({ stop, changes }: Awaited<ReturnType<typeof open>>) => {
    const told: Told[] = [];
    for (let turn = 1; ; turn++) {
      const before = told.length;
      for await (const batch of changes) {
        told.push(...batch);
        const isTurnOver = stores.length > 1 && told.length > before + 100;
        if (isTurnOver || batch.some(({ _id }) => _id === LAST)) stop.abort();
      }
      if (told.some(({ _id }) => _id === LAST)) return told;
      ({ stop, changes } = await open(turn, changes.position));
    }
  };
  return { told: read(await open(0)) };
}

/** The highest count that any process was told, per document. */
const told = new Map<number, number>();

/** Increments, reads and takes numbers until it is told to stop. */
async function load(store: Store, first: number, progress: Progress, stop: AbortSignal): Promise<History> {
  const history: History = { answered: [], doubted: new Set(), refused: new Set(), reads: [], taken: [] };
  const ledgers = await store.collection(LEDGERS);
  const options = () => ({ deadline: realTime.clock() + 1000 });
  let next = first;

  /** Anything but `Unavailable` fails the test. */
  const unlessUnavailable = async (call: () => Promise<void>, otherwise: (error: Unavailable) => void = () => {}) => {
    try {
      await call();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      otherwise(error);
    }
  };
  const increment = async (id: number) => {
    const number = next++;
    await unlessUnavailable(
      async () => {
        const count = await ledgers.update(
          id,
          (doc) => {
            const made = [...(doc?.made ?? []), number];
            return put({ _id: id, made }, made.length);
          },
          options(),
        );
        history.answered.push({ id, number, count });
        told.set(id, Math.max(told.get(id) ?? 0, count));
        progress.answers++;
      },
      ({ inDoubt }) => (inDoubt ? history.doubted : history.refused).add(number),
    );
  };
  const read = (id: number) =>
    unlessUnavailable(async () => {
      const before = told.get(id) ?? 0;
      const doc = await ledgers.get(id, { ...options(), latest: true });
      history.reads.push({ id, before, seen: doc?.made.length ?? 0 });
      if (doc) progress.reads[id] = (progress.reads[id] ?? 0) + 1;
    });
  const take = () =>
    unlessUnavailable(async () => {
      history.taken.push(await store.nextId("numbers", options()));
    });

  const until = async (work: () => Promise<void>) => {
    while (!stop.aborted) {
      await work();
      await sleep(5);
    }
  };
  await Promise.all([
    ...range(DOCUMENTS * 2).map((i) => until(() => increment(i % DOCUMENTS))),
    ...range(DOCUMENTS).map((id) => until(() => read(id))),
    until(take),
  ]);
  return history;
}
