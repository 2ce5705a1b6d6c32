import { CALLER_HEADER, type Call } from "@petstore/rpc/call";
import { SEEN_HEADER } from "@petstore/rpc/client/keyed-retry";
import { describe, expect, test } from "vitest";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { DomainError } from "./errors.ts";
import { RETENTION } from "./expiry.ts";
import {
  abandoned,
  accepted,
  createKeys,
  KEYS,
  REPLAYED_HEADER,
  type Resolution,
  type Resolved,
  refused,
} from "./idempotency-keys.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const soldOut = new DomainError("INSUFFICIENT_STOCK", "none left");

/** Keys over records that are nothing but their resolution. */
async function setUp() {
  let now = 500_000 * HOUR;
  const store = openMemory();
  const resolutions = new Map<number, Resolution>();
  const points: Record<string, (() => Promise<void>) | undefined> = {};
  const collection = await store.collection(KEYS);
  let afterRead: (() => Promise<void>) | undefined;
  let isBehind = false;
  const slow: typeof collection = {
    ...collection,
    async get(id, options) {
      const doc = isBehind && !options?.latest ? undefined : await collection.get(id, options);
      await afterRead?.();
      return doc;
    },
  };
  const keys = createKeys(
    slow,
    {
      nextId: () => store.nextId("record"),
      resolutionOf: async (id) => resolutions.get(id) ?? "unwritten",
      abandon: async (id) => void (resolutions.has(id) || resolutions.set(id, "abandoned")),
    },
    { clock: () => now, failpoint: async (name) => points[name]?.(), retention: RETENTION },
  );
  /** A service's create: writes the record unless it is there, and decides it as told. */
  const decide = (as: "accepted" | "refused" | "abandoned" | "crash") => async (id: number, params: object) => {
    if (!resolutions.has(id) || resolutions.get(id) === "undecided")
      resolutions.set(id, as === "crash" ? "undecided" : as);
    if (as === "crash") throw new Error("crash");
    const ended: Record<string, Resolved<object>> = {
      accepted: accepted({ id, params }),
      refused: refused(soldOut),
      abandoned,
    };
    return ended[resolutions.get(id) as string] as Resolved<object>;
  };
  function attempt(
    body: object,
    run: Parameters<typeof keys.create>[2],
    headers: Record<string, string> = {},
    rpc = "Create",
  ) {
    const call = {
      headers: new Headers(headers),
      responseHeaders: new Headers(),
      caller: headers[CALLER_HEADER] ?? "a",
    };
    const create = keys.create(call as Call, { rpc, requestId: "k", params: body }, run);
    return create.then(
      (answer) => ({ answer, replayed: call.responseHeaders.get(REPLAYED_HEADER) === "true" }),
      (error: DomainError) => ({ error: error.reason ?? error.message, floor: error.metadata?.floor }),
    );
  }
  const advance = (ms: number) => {
    now += ms;
  };
  /** The next attempt that reads its key document sleeps then, until it is woken. */
  const sleepAfterRead = () => {
    const asleep = Promise.withResolvers<void>();
    afterRead = () => {
      afterRead = undefined;
      return asleep.promise;
    };
    return asleep.resolve;
  };
  /** From now on the process has not heard of what others wrote, unless it asks for the latest. */
  const fallBehind = () => {
    isBehind = true;
  };
  return { keys, resolutions, decide, attempt, points, advance, sleepAfterRead, fallBehind };
}
const body = { name: "Rex" };
const other = { name: "Tom" };
const ok = (id: number, params: object, replayed: boolean) => ({ answer: { id, params }, replayed });

describe("the same key and body", () => {
  test("make one record, and every answer but the first is a replay", async () => {
    const { attempt, decide } = await setUp();
    expect(await attempt(body, decide("accepted"))).toEqual(ok(1, body, false));
    expect(await attempt(body, decide("accepted"))).toEqual(ok(1, body, true));
  });

  test("at the same time join one record", async () => {
    const { attempt, decide, resolutions } = await setUp();
    const answers = await Promise.all(Array.from({ length: 5 }, () => attempt(body, decide("accepted"))));
    expect(new Set(answers.map((a) => JSON.stringify("answer" in a && a.answer))).size).toBe(1);
    expect(answers.filter((a) => "replayed" in a && !a.replayed)).toHaveLength(1);
    expect([...resolutions.values()].filter((resolution) => resolution === "accepted")).toHaveLength(1);
  });

  test("finish what a crash left undecided", async () => {
    const { attempt, decide } = await setUp();
    expect(await attempt(body, decide("crash"))).toMatchObject({ error: "crash" });
    expect(await attempt(body, decide("accepted"))).toEqual(ok(1, body, true));
  });

  test("make the record that a crash kept from being written", async () => {
    const { attempt, decide, points } = await setUp();
    points["key.claimed"] = () => Promise.reject(new Error("crash"));
    await attempt(body, decide("accepted"));
    points["key.claimed"] = undefined;
    expect(await attempt(body, decide("accepted"))).toEqual(ok(1, body, true));
  });
});

describe("the same key with another body", () => {
  test("after success is refused for good", async () => {
    const { attempt, decide } = await setUp();
    await attempt(body, decide("accepted"));
    expect(await attempt(other, decide("accepted"))).toMatchObject({ error: "IDEMPOTENCY_KEY_REUSED" });
  });

  test("while the first is undecided has to wait", async () => {
    const { attempt, decide } = await setUp();
    await attempt(body, decide("crash"));
    expect(await attempt(other, decide("accepted"))).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
  });

  test("takes over from a record that was never written, and nobody writes that any more", async () => {
    const { attempt, decide, points, resolutions } = await setUp();
    points["key.claimed"] = () => Promise.reject(new Error("crash"));
    await attempt(body, decide("accepted"));
    points["key.claimed"] = undefined;
    expect(await attempt(other, decide("accepted"))).toEqual(ok(2, other, false));
    expect(resolutions.get(1)).toBe("abandoned");
  });

  test("after a refusal makes its own record", async () => {
    const { attempt, decide } = await setUp();
    expect(await attempt(body, decide("refused"))).toMatchObject({ error: "INSUFFICIENT_STOCK" });
    expect(await attempt(other, decide("accepted"))).toMatchObject({ answer: { params: other }, replayed: false });
  });
});

test("a key that another process has claimed is seen at once", async () => {
  const { attempt, decide, fallBehind } = await setUp();
  await attempt(body, decide("accepted"));
  fallBehind();
  expect(await attempt(body, decide("accepted"))).toEqual(ok(1, body, true));
  expect(await attempt(other, decide("accepted"))).toEqual({ error: "IDEMPOTENCY_KEY_REUSED" });
});

test("keys belong to an RPC", async () => {
  const { attempt, decide } = await setUp();
  await attempt(body, decide("accepted"));
  expect(await attempt(other, decide("accepted"), {}, "CreateOther")).toEqual(ok(2, other, false));
});

test("keys belong to a caller", async () => {
  const { attempt, decide } = await setUp();
  await attempt(body, decide("accepted"), { [CALLER_HEADER]: "a" });
  expect(await attempt(other, decide("accepted"), { [CALLER_HEADER]: "b" })).toEqual(ok(2, other, false));
});

describe("a refusal", () => {
  test("sends an attempt back that set out before it, with what to see first", async () => {
    const { attempt, decide } = await setUp();
    await attempt(body, decide("refused"), { [SEEN_HEADER]: "0" });
    const late = await attempt(body, decide("accepted"), { [SEEN_HEADER]: "0" });
    expect(late).toEqual({ error: "IDEMPOTENCY_IN_PROGRESS", floor: "2" });
    expect(await attempt(body, decide("accepted"), { [SEEN_HEADER]: "2" })).toMatchObject({ replayed: false });
  });

  test("still sends it back when the key was taken meanwhile and its record given up", async () => {
    const { attempt, decide, points, resolutions } = await setUp();
    await attempt(body, decide("refused"), { [SEEN_HEADER]: "0" });
    points["key.claimed"] = () => Promise.reject(new Error("crash"));
    await attempt(body, decide("accepted"), { [SEEN_HEADER]: "2" });
    points["key.claimed"] = undefined;
    resolutions.set(3, "abandoned");
    const late = await attempt(body, decide("accepted"), { [SEEN_HEADER]: "0" });
    expect(late).toEqual({ error: "IDEMPOTENCY_IN_PROGRESS", floor: "2" });
  });

  test("stops an attempt that had its id before and slept", async () => {
    const { attempt, decide, points } = await setUp();
    const asleep = Promise.withResolvers<void>();
    points["key.id-taken"] = () => {
      points["key.id-taken"] = undefined;
      return asleep.promise;
    };
    const sleeper = attempt(body, decide("accepted"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(await attempt(body, decide("refused"))).toMatchObject({ error: "INSUFFICIENT_STOCK" });
    asleep.resolve();
    expect(await sleeper).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
  });

  test.each(["just before", "just after"])(
    "counts as long as the first one of a key that was refused %s it expired",
    async (when) => {
      const { keys, attempt, decide, points, advance } = await setUp();
      await attempt(body, decide("crash"));
      advance(25 * HOUR - MINUTE);
      const asleep = Promise.withResolvers<void>();
      points["key.id-taken"] = () => {
        points["key.id-taken"] = undefined;
        return asleep.promise;
      };
      const sleeper = attempt(body, decide("accepted"));
      await new Promise((resolve) => setImmediate(resolve));
      const sweep = () => keys.removeExpired(100, { deadline: Number.MAX_VALUE, requestId: "", caller: "ann" });
      const expire = async () => {
        advance(2 * MINUTE);
        await sweep();
      };
      const refusing: typeof run = async (...record) => {
        const ended = await run(...record);
        if (when === "just after") await expire();
        return ended;
      };
      const run = decide("refused");
      const again = await attempt(body, refusing);
      expect(again).toMatchObject({ error: "INSUFFICIENT_STOCK" });
      if (when === "just before") await expire();
      asleep.resolve();
      expect(await sleeper).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
    },
  );

  test.each(["0", undefined])(
    "stops an attempt that had read the free key before and slept (seen: %s)",
    async (seen) => {
      const { attempt, decide, sleepAfterRead, resolutions } = await setUp();
      const headers: Record<string, string> = seen === undefined ? {} : { [SEEN_HEADER]: seen };
      const wake = sleepAfterRead();
      const sleeper = attempt(body, decide("accepted"), headers);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await attempt(body, decide("refused"), headers)).toMatchObject({ error: "INSUFFICIENT_STOCK" });
      wake();
      expect(await sleeper).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
      expect([...resolutions.values()]).not.toContain("accepted");
    },
  );

  test("for another body holds for what was sent before it, also when the key is free later", async () => {
    const { attempt, decide, resolutions } = await setUp();
    await attempt(body, decide("crash"));
    const seen = { [SEEN_HEADER]: "0" };
    expect(await attempt(other, decide("accepted"), seen)).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
    resolutions.set(1, "abandoned");
    expect(await attempt(other, decide("accepted"), seen)).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
  });

  test("never frees a key that another attempt has taken over, and follows that one", async () => {
    const { attempt, decide, resolutions } = await setUp();
    let rival: Promise<unknown> | undefined;
    const answer = await attempt(body, async (id, params) => {
      if (rival) return decide("accepted")(id, params);
      await decide("abandoned")(id, params);
      rival = attempt(body, decide("accepted"));
      await rival;
      return refused(soldOut);
    });
    expect(answer).toEqual(ok(2, body, true));
    expect([...resolutions.values()].filter((resolution) => resolution === "accepted")).toHaveLength(1);
  });

  test("is not answered by an attempt that finds it: the key is freed and tried anew", async () => {
    const { attempt, decide, points } = await setUp();
    points["key.freeing"] = () => Promise.reject(new Error("crash"));
    await attempt(body, decide("refused"));
    points["key.freeing"] = undefined;
    expect(await attempt(body, decide("accepted"))).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
    expect(await attempt(body, decide("accepted"))).toMatchObject({ replayed: false });
  });
});

describe("a record that was given up", () => {
  test("is replaced by one with a fresh id, within the call", async () => {
    const { attempt, decide } = await setUp();
    const outcomes = ["abandoned", "abandoned", "accepted"] as const;
    let round = 0;
    expect(await attempt(body, (id, params) => decide(outcomes[round++] ?? "accepted")(id, params))).toEqual(
      ok(3, body, false),
    );
  });

  test("is not replaced again and again", async () => {
    const { attempt, decide } = await setUp();
    expect(await attempt(body, decide("abandoned"))).toMatchObject({ error: "UNAVAILABLE" });
  });

  test("leaves the key to whoever has taken it over meanwhile", async () => {
    const { attempt, decide, resolutions } = await setUp();
    let rival: Promise<unknown> | undefined;
    const answer = await attempt(body, async (id, params) => {
      if (rival) return decide("accepted")(id, params);
      const ended = await decide("abandoned")(id, params);
      rival = attempt(body, decide("accepted"));
      await rival;
      return ended;
    });
    expect(answer).toEqual(ok(2, body, true));
    expect([...resolutions.values()].filter((resolution) => resolution === "accepted")).toHaveLength(1);
  });
});

test("a key that is old enough counts no more, whether it was swept or not", async () => {
  const { attempt, decide, resolutions, advance } = await setUp();
  await attempt(body, decide("accepted"));
  advance(26 * HOUR);
  // Its record may be gone as well: it must not be made again.
  resolutions.clear();
  expect(await attempt(other, decide("accepted"))).toEqual(ok(2, other, false));
  expect([...resolutions.keys()]).toEqual([2]);
});

test("keys are kept for 24 hours and then swept", async () => {
  const { keys, attempt, decide, advance } = await setUp();
  await attempt(body, decide("accepted"));
  const budget = { deadline: Number.MAX_VALUE, requestId: "", caller: "ann" };
  advance(24 * HOUR);
  expect(await keys.removeExpired(100, budget)).toBe(0);
  expect(await attempt(body, decide("accepted"))).toMatchObject({ replayed: true });
  advance(2 * HOUR);
  expect(await keys.removeExpired(100, budget)).toBe(1);
  expect(await attempt(other, decide("accepted"))).toMatchObject({ replayed: false });
  advance(1000 * HOUR);
  expect(await keys.removeExpired(100, budget)).toBe(1);
});
