import type { Call } from "@petstore/rpc/call";
import { describe, expect, test } from "vitest";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { DomainError } from "./errors.ts";
import {
  type Attempt,
  abandoned,
  accepted,
  createKeys,
  REPLAYED_HEADER,
  type Resolved,
  refused,
} from "./idempotency-keys.ts";
import { KEYS } from "./key-transitions.ts";
import { RETENTION } from "./retention.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const callContext = { deadline: Number.MAX_VALUE, requestId: "", caller: "ann", progress: { hasBegun: false } };
const soldOut = new DomainError("INSUFFICIENT_STOCK", "none left");

/** A record is nothing but its outcome. */
type Outcome = "accepted" | "refused" | "abandoned";

async function setUp() {
  let now = 500_000 * HOUR;
  const store = openMemory();
  const records = new Map<number, Outcome>();
  const runs: Attempt[] = [];
  const points: Record<string, (() => Promise<void>) | undefined> = {};
  const collection = await store.collection(KEYS);
  let missed = 0;
  const reads: typeof collection = {
    ...collection,
    async get(id, options) {
      const key = missed-- > 0 && !options?.latest ? undefined : await collection.get(id, options);
      await points.read?.();
      return key;
    },
    async list(...query) {
      const found = await collection.list(...query);
      await points.listed?.();
      return found;
    },
  };
  const keys = createKeys(reads, "record", {
    store,
    clock: () => now,
    random: Math.random,
    failpoint: async (name) => points[name]?.(),
    retention: RETENTION,
  });
  type Run = (attempt: Attempt, stored: Outcome | undefined) => Promise<Resolved<number>>;
  /** A service's create: stores the outcome unless one is stored, and answers by what is stored then. */
  const ending =
    (as: Outcome, above?: number): Run =>
    async (attempt) => {
      runs.push(attempt);
      const outcome = records.get(attempt.id) ?? as;
      if (attempt.isKeyed || outcome === "accepted") records.set(attempt.id, outcome);
      if (outcome === "refused") return refused(soldOut);
      return outcome === "accepted" ? accepted(attempt.id) : abandoned(above);
    };
  /** Each attempt ends otherwise. */
  const endingInTurn = (outcomes: readonly Outcome[], above?: number): Run => {
    const next = outcomes.values();
    return (...all) => ending(next.next().value ?? "refused", above)(...all);
  };
  const crashing: Run = async () => {
    throw new Error("crash");
  };
  interface More {
    readonly rpc?: string;
    readonly caller?: string;
    readonly requestId?: string | undefined;
    readonly above?: number;
  }
  /** The record that was made, or why none was; with "again" if the answer says that it is a replay. */
  async function attempt(body: object, run: Run, { rpc = "Create", caller = "a", ...more }: More = {}) {
    const call = { ...callContext, headers: new Headers(), responseHeaders: new Headers(), caller };
    const requestId = "requestId" in more ? more.requestId : "k";
    const stored = async (id: number) => {
      const outcome = records.get(id);
      await points.stored?.();
      return outcome;
    };
    const creation = { rpc, requestId, params: body, stored, above: more.above };
    const again = () => (call.responseHeaders.get(REPLAYED_HEADER) === "true" ? ["again"] : []);
    try {
      return [await keys.create(call as unknown as Call, creation, run), ...again()];
    } catch (error) {
      return [error instanceof DomainError ? error.reason : (error as Error).message, ...again()];
    }
  }
  return {
    ...{ keys, collection, records, runs, points, ending, endingInTurn, crashing, attempt },
    removeExpired: () => keys.removeExpired(100, callContext),
    stored: () => collection.list({ limit: 9, order: "asc" }),
    advance(ms: number) {
      now += ms;
    },
    /** The next read is stale, as if another process wrote what it misses. */
    makeStale() {
      missed = 1;
    },
  };
}
const body = { name: "Rex" };
const other = { name: "Tom" };

describe("the same key and body", () => {
  test("make one record, and every answer but the first is a replay", async () => {
    const { attempt, ending } = await setUp();
    expect(await attempt(body, ending("accepted"))).toEqual([1]);
    expect(await attempt(body, ending("accepted"))).toEqual([1, "again"]);
  });

  test("concurrently join one record", async () => {
    const { attempt, ending, records } = await setUp();
    const answers = await Promise.all(Array.from({ length: 5 }, () => attempt(body, ending("accepted"))));
    expect(new Set(answers.map(([id]) => id)).size).toBe(1);
    expect(answers.filter(({ length }) => length === 1)).toHaveLength(1);
    expect(records.size).toBe(1);
  });

  test("are answered by what is stored, which every attempt is shown", async () => {
    const { attempt, ending } = await setUp();
    const shown: unknown[] = [];
    const run: typeof answering = (made, stored) => {
      shown.push(stored);
      return answering(made, stored);
    };
    const answering = ending("accepted");
    await attempt(body, run);
    await attempt(body, run);
    expect(shown).toEqual([undefined, "accepted"]);
  });

  test("drive a record on that a crash left unwritten", async () => {
    const { attempt, ending, crashing } = await setUp();
    expect(await attempt(body, crashing)).toEqual(["crash"]);
    expect(await attempt(body, ending("accepted"))).toEqual([1, "again"]);
  });

  test("drive it on also when the crash was right after the claim", async () => {
    const { attempt, ending, points } = await setUp();
    points["key.claimed"] = () => Promise.reject(new Error("crash"));
    await attempt(body, ending("accepted"));
    points["key.claimed"] = undefined;
    expect(await attempt(body, ending("accepted"))).toEqual([1, "again"]);
  });

  test("have the same tag in every attempt, and another than other keys and bodies", async () => {
    const { attempt, ending, runs, advance } = await setUp();
    await attempt(body, ending("abandoned"));
    await attempt(body, ending("accepted"));
    const [tags, ids] = [new Set(runs.map(({ tag }) => tag)), new Set(runs.map(({ id }) => id))];
    expect(tags.size).toBe(1);
    expect(ids.size).toBeGreaterThan(1);
    for (const requestId of ["l", "m"]) await attempt(body, ending("accepted"), { requestId });
    advance(25 * HOUR);
    await attempt(other, ending("accepted"));
    expect(new Set(runs.map(({ tag }) => tag)).size).toBe(4);
    for (const { tag, isKeyed } of runs) expect([tag, isKeyed]).toEqual([expect.stringMatching(/^[\w-]{8}$/), true]);
  });
});

describe("another body", () => {
  test("is refused at once, whatever became of the first", async () => {
    const { attempt, ending, crashing } = await setUp();
    const first = { accepted: ending("accepted"), refused: ending("refused"), crashed: crashing };
    for (const [requestId, run] of Object.entries(first)) {
      await attempt(body, run, { requestId });
      expect(await attempt(other, ending("accepted"), { requestId })).toEqual(["IDEMPOTENCY_KEY_REUSED"]);
    }
  });

  test("is refused while the first is under way, and does nothing in its place", async () => {
    const { attempt, ending, runs } = await setUp();
    const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = attempt(body, async (...all) => {
      begun.resolve();
      await end.promise;
      return ending("accepted")(...all);
    });
    await begun.promise;
    expect(await attempt(other, ending("accepted"))).toEqual(["IDEMPOTENCY_KEY_REUSED"]);
    expect(runs).toEqual([]);
    end.resolve();
    expect(await first).toEqual([1]);
  });

  test("of two at the same time one is refused", async () => {
    const { attempt, ending, records } = await setUp();
    const answers = await Promise.all([attempt(body, ending("accepted")), attempt(other, ending("accepted"))]);
    expect(answers.map(([answer]) => typeof answer).sort()).toEqual(["number", "string"]);
    expect(records.size).toBe(1);
  });
});

describe("a refusal", () => {
  test("is the answer to the key from then on, also when the record would be accepted by now", async () => {
    const { attempt, ending } = await setUp();
    expect(await attempt(body, ending("refused"))).toEqual(["INSUFFICIENT_STOCK"]);
    expect(await attempt(body, ending("accepted"))).toEqual(["INSUFFICIENT_STOCK", "again"]);
  });

  test("that was not stored is not the answer: the same body drives the record on", async () => {
    const { attempt, ending } = await setUp();
    expect(await attempt(body, async () => refused(soldOut))).toEqual(["INSUFFICIENT_STOCK"]);
    expect(await attempt(body, ending("accepted"))).toEqual([1, "again"]);
  });

  test("without a key writes nothing here", async () => {
    const { attempt, ending, stored, records } = await setUp();
    expect(await attempt(body, ending("refused"), { requestId: undefined })).toEqual(["INSUFFICIENT_STOCK"]);
    expect([await stored(), [...records]]).toEqual([[], []]);
  });
});

describe("without a key", () => {
  const unkeyed = { requestId: undefined };

  test("each attempt makes a record of its own, under a tag of its own", async () => {
    const { attempt, ending, stored, runs } = await setUp();
    expect(await attempt(body, ending("accepted"), unkeyed)).toEqual([1]);
    expect(await attempt(body, ending("accepted"), unkeyed)).toEqual([2]);
    expect(await stored()).toEqual([]);
    expect(new Set(runs.map(({ tag }) => tag)).size).toBe(2);
    for (const { tag, isKeyed } of runs) expect([tag, isKeyed]).toEqual([expect.stringMatching(/^[\w-]{8}$/), false]);
  });

  test("an abandoned id is followed by a fresh one above those that are known, three in all", async () => {
    const { attempt, ending, endingInTurn, runs } = await setUp();
    expect(await attempt(body, ending("abandoned", 9), unkeyed)).toEqual(["UNAVAILABLE"]);
    expect(runs.map(({ id }) => id)).toEqual([1, 10, 11]);
    const run = endingInTurn(["abandoned", "abandoned", "accepted"]);
    expect(await attempt(body, run, unkeyed)).toEqual([14]);
  });
});

test.each([{ requestId: "k" }, { requestId: undefined }])(
  "the first id is above those that are known: %j",
  async (how) => {
    const { attempt, ending } = await setUp();
    expect(await attempt(body, ending("accepted"), { ...how, above: 9 })).toEqual([10]);
  },
);

describe("an abandoned record", () => {
  test("is replaced by one with a fresh id, within the call", async () => {
    const { attempt, endingInTurn, stored } = await setUp();
    expect(await attempt(body, endingInTurn(["abandoned", "abandoned", "accepted"], 5))).toEqual([7]);
    expect(await stored()).toMatchObject([{ recordId: 7 }]);
  });

  test("is not replaced more than three times, and a later attempt goes on", async () => {
    const { attempt, ending, runs } = await setUp();
    expect(await attempt(body, ending("abandoned"))).toEqual(["UNAVAILABLE"]);
    expect(runs.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
    expect(await attempt(body, ending("accepted"))).toEqual([5, "again"]);
  });

  test("leaves the key to a concurrent attempt that has replaced it meanwhile", async () => {
    const { attempt, ending, records } = await setUp();
    let rival: Promise<unknown> | undefined;
    const answer = await attempt(body, async (made, stored) => {
      if (rival) return ending("accepted")(made, stored);
      const ended = await ending("abandoned")(made, stored);
      rival = attempt(body, ending("accepted"));
      expect(await rival).toEqual([2, "again"]);
      return ended;
    });
    expect(answer).toEqual([2]);
    expect([...records]).toEqual([
      [1, "abandoned"],
      [2, "accepted"],
    ]);
  });
});

test("a key that another process has claimed is found, though a read misses it", async () => {
  const { attempt, ending, makeStale } = await setUp();
  await attempt(body, ending("accepted"));
  makeStale();
  expect(await attempt(body, ending("accepted"))).toEqual([1, "again"]);
  makeStale();
  expect(await attempt(other, ending("accepted"))).toEqual(["IDEMPOTENCY_KEY_REUSED"]);
});

test.each([{ rpc: "CreateOther" }, { caller: "b" }, { requestId: "l" }])(
  "keys belong to an RPC and a caller: %j has its own",
  async (more) => {
    const { attempt, ending } = await setUp();
    await attempt(body, ending("accepted"));
    expect(await attempt(other, ending("accepted"), more)).toEqual([2]);
  },
);

describe("a key", () => {
  test("is answered from for 24 hours", async () => {
    const { attempt, ending, advance } = await setUp();
    await attempt(body, ending("accepted"));
    advance(25 * HOUR - 1);
    expect(await attempt(body, ending("accepted"))).toEqual([1, "again"]);
    advance(1);
    expect(await attempt(other, ending("accepted"))).toEqual([2]);
  });

  test("that has expired counts no more, also when its record is gone", async () => {
    const { attempt, ending, records, advance } = await setUp();
    await attempt(body, ending("accepted"));
    advance(25 * HOUR);
    records.clear();
    expect(await attempt(body, ending("accepted"))).toEqual([2]);
    expect([...records.keys()]).toEqual([2]);
  });

  test("that has expired counts no more, also when a read misses it", async () => {
    const { attempt, ending, records, advance, makeStale } = await setUp();
    await attempt(body, ending("accepted"));
    advance(25 * HOUR);
    records.clear();
    makeStale();
    expect(await attempt(body, ending("accepted"))).toEqual([3]);
    expect([...records.keys()]).toEqual([3]);
  });

  test.each(["read", "listed"])("that has expired is left to whoever claims it once it is %s (race)", async (point) => {
    const { attempt, ending, removeExpired, points, advance, stored } = await setUp();
    await attempt(body, ending("accepted"));
    advance(26 * HOUR);
    points[point] = async () => {
      points[point] = undefined;
      expect(await attempt(body, ending("accepted"))).toEqual([2]);
    };
    if (point === "listed") await removeExpired();
    expect(await attempt(body, ending("accepted"))).toEqual([2, "again"]);
    expect(await stored()).toMatchObject([{ recordId: 2 }]);
  });

  test("is kept an hour longer than it is answered from, and then removed", async () => {
    const { attempt, ending, removeExpired, advance } = await setUp();
    await attempt(body, ending("accepted"));
    advance(26 * HOUR - 1);
    expect(await removeExpired()).toBe(0);
    advance(1);
    expect(await removeExpired()).toBe(1);
    advance(1000 * HOUR);
    expect(await removeExpired()).toBe(0);
  });

  test("is renewed in its last hour before its record is made, so that it does not expire meanwhile", async () => {
    const { attempt, ending, crashing, advance, stored } = await setUp();
    await attempt(body, crashing);
    advance(23 * HOUR);
    await attempt(body, crashing);
    expect(await stored()).toMatchObject([{ hour: 500_000 }]);
    advance(HOUR);
    const hours: number[] = [];
    await attempt(body, async (...all) => {
      hours.push(...(await stored()).map(({ hour }) => hour));
      return ending("accepted")(...all);
    });
    expect(hours).toEqual([500_024]);
  });

  test("is not renewed once its record is written, so that it does not outlive that", async () => {
    const { attempt, ending, advance, stored } = await setUp();
    await attempt(body, ending("accepted"));
    advance(24 * HOUR);
    expect(await attempt(body, ending("accepted"))).toEqual([1, "again"]);
    expect(await stored()).toMatchObject([{ hour: 500_000 }]);
  });

  test("that names another record by the time it is renewed is read again", async () => {
    const { attempt, ending, endingInTurn, crashing, advance, points, runs } = await setUp();
    await attempt(body, crashing);
    advance(24 * HOUR);
    points.stored = async () => {
      points.stored = undefined;
      expect(await attempt(body, endingInTurn(["abandoned", "accepted"]))).toEqual([2, "again"]);
      runs.length = 0;
    };
    expect(await attempt(body, ending("accepted"))).toEqual([2, "again"]);
    expect(runs.map(({ id }) => id)).toEqual([2]);
  });
});
