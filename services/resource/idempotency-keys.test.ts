import { CALLER_HEADER, type Call } from "@petstore/rpc/call";
import { SEEN_EPOCH_HEADER } from "@petstore/rpc/client/keyed-retry";
import { describe, expect, test } from "vitest";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { DomainError } from "./errors.ts";
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
import { RETENTION } from "./retention.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const callContext = { deadline: Number.MAX_VALUE, requestId: "", caller: "ann", progress: { hasBegun: false } };
const soldOut = new DomainError("INSUFFICIENT_STOCK", "none left");

/** Keys over records that are nothing but their resolution. */
async function setUp() {
  let now = 500_000 * HOUR;
  const store = openMemory();
  const resolutions = new Map<number, Resolution>();
  const points: Record<string, (() => Promise<void>) | undefined> = {};
  const collection = await store.collection(KEYS);
  let afterRead: (() => Promise<void>) | undefined;
  let isStale = false;
  const slow: typeof collection = {
    ...collection,
    async get(id, options) {
      const doc = isStale && !options?.latest ? undefined : await collection.get(id, options);
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
  /** A service's create: writes the record unless it is there, and ends it as `as` says. */
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
      (error: DomainError) => ({ error: error.reason ?? error.message, epoch: error.metadata?.epoch }),
    );
  }
  const advance = (ms: number) => {
    now += ms;
  };
  /** The next attempt that reads its key document waits then, until it is resumed. */
  const delayAfterRead = () => {
    const delayed = Promise.withResolvers<void>();
    afterRead = () => {
      afterRead = undefined;
      return delayed.promise;
    };
    return delayed.resolve;
  };
  /** From now on reads are stale, as if another process wrote what they miss, unless they ask for the latest. */
  const makeStale = () => {
    isStale = true;
  };
  return { keys, resolutions, decide, attempt, points, advance, delayAfterRead, makeStale };
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

  test("concurrently join one record", async () => {
    const { attempt, decide, resolutions } = await setUp();
    const answers = await Promise.all(Array.from({ length: 5 }, () => attempt(body, decide("accepted"))));
    expect(new Set(answers.map((a) => JSON.stringify("answer" in a && a.answer))).size).toBe(1);
    expect(answers.filter((a) => "replayed" in a && !a.replayed)).toHaveLength(1);
    expect([...resolutions.values()].filter((resolution) => resolution === "accepted")).toHaveLength(1);
  });

  test("finish what a crash left undecided: crash recovery", async () => {
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

  test("replaces a record that was never written, which then is abandoned", async () => {
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

test("a key that another process has claimed is read at its latest state", async () => {
  const { attempt, decide, makeStale } = await setUp();
  await attempt(body, decide("accepted"));
  makeStale();
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
  test("sends an attempt back that began before it, with the epoch to ask again with", async () => {
    const { attempt, decide } = await setUp();
    await attempt(body, decide("refused"), { [SEEN_EPOCH_HEADER]: "0" });
    const late = await attempt(body, decide("accepted"), { [SEEN_EPOCH_HEADER]: "0" });
    expect(late).toEqual({ error: "IDEMPOTENCY_IN_PROGRESS", epoch: "2" });
    expect(await attempt(body, decide("accepted"), { [SEEN_EPOCH_HEADER]: "2" })).toMatchObject({ replayed: false });
  });

  test("still sends it back when the key was claimed meanwhile and its record abandoned", async () => {
    const { attempt, decide, points, resolutions } = await setUp();
    await attempt(body, decide("refused"), { [SEEN_EPOCH_HEADER]: "0" });
    points["key.claimed"] = () => Promise.reject(new Error("crash"));
    await attempt(body, decide("accepted"), { [SEEN_EPOCH_HEADER]: "2" });
    points["key.claimed"] = undefined;
    resolutions.set(3, "abandoned");
    const late = await attempt(body, decide("accepted"), { [SEEN_EPOCH_HEADER]: "0" });
    expect(late).toEqual({ error: "IDEMPOTENCY_IN_PROGRESS", epoch: "2" });
  });

  test("fences an attempt that took its id before and was delayed", async () => {
    const { attempt, decide, points } = await setUp();
    const delayed = Promise.withResolvers<void>();
    points["key.id-taken"] = () => {
      points["key.id-taken"] = undefined;
      return delayed.promise;
    };
    const late = attempt(body, decide("accepted"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(await attempt(body, decide("refused"))).toMatchObject({ error: "INSUFFICIENT_STOCK" });
    delayed.resolve();
    expect(await late).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
  });

  test.each(["just before", "just after"])(
    "fences as long as the first one of a key that was refused %s it expired",
    async (when) => {
      const { keys, attempt, decide, points, advance } = await setUp();
      await attempt(body, decide("crash"));
      advance(25 * HOUR - MINUTE);
      const delayed = Promise.withResolvers<void>();
      points["key.id-taken"] = () => {
        points["key.id-taken"] = undefined;
        return delayed.promise;
      };
      const late = attempt(body, decide("accepted"));
      await new Promise((resolve) => setImmediate(resolve));
      const removeExpired = () => keys.removeExpired(100, callContext);
      const expire = async () => {
        advance(2 * MINUTE);
        await removeExpired();
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
      delayed.resolve();
      expect(await late).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
    },
  );

  test.each(["0", undefined])(
    "fences an attempt that read the free key before and was delayed (seen: %s)",
    async (seen) => {
      const { attempt, decide, delayAfterRead, resolutions } = await setUp();
      const headers: Record<string, string> = seen === undefined ? {} : { [SEEN_EPOCH_HEADER]: seen };
      const resume = delayAfterRead();
      const late = attempt(body, decide("accepted"), headers);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await attempt(body, decide("refused"), headers)).toMatchObject({ error: "INSUFFICIENT_STOCK" });
      resume();
      expect(await late).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
      expect([...resolutions.values()]).not.toContain("accepted");
    },
  );

  test("for another body fences what was sent before it, also when the key is free later", async () => {
    const { attempt, decide, resolutions } = await setUp();
    await attempt(body, decide("crash"));
    const seen = { [SEEN_EPOCH_HEADER]: "0" };
    expect(await attempt(other, decide("accepted"), seen)).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
    resolutions.set(1, "abandoned");
    expect(await attempt(other, decide("accepted"), seen)).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
  });

  test("never frees a key that a concurrent attempt has taken over, and joins that one", async () => {
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

  test("that a crash left without freeing the key is not answered again: the key is freed and claimed anew", async () => {
    const { attempt, decide, points } = await setUp();
    points["key.freeing"] = () => Promise.reject(new Error("crash"));
    await attempt(body, decide("refused"));
    points["key.freeing"] = undefined;
    expect(await attempt(body, decide("accepted"))).toMatchObject({ error: "IDEMPOTENCY_IN_PROGRESS" });
    expect(await attempt(body, decide("accepted"))).toMatchObject({ replayed: false });
  });
});

describe("an abandoned record", () => {
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

  test("leaves the key to a concurrent attempt that has replaced it meanwhile", async () => {
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

test("a key that has expired counts no more, also when the expiry worker has not removed it", async () => {
  const { attempt, decide, resolutions, advance } = await setUp();
  await attempt(body, decide("accepted"));
  advance(26 * HOUR);
  // Its record may be gone as well: it must not be made again.
  resolutions.clear();
  expect(await attempt(other, decide("accepted"))).toEqual(ok(2, other, false));
  expect([...resolutions.keys()]).toEqual([2]);
});

test("keys are kept for 24 hours and then removed", async () => {
  const { keys, attempt, decide, advance } = await setUp();
  await attempt(body, decide("accepted"));
  advance(24 * HOUR);
  expect(await keys.removeExpired(100, callContext)).toBe(0);
  expect(await attempt(body, decide("accepted"))).toMatchObject({ replayed: true });
  advance(2 * HOUR);
  expect(await keys.removeExpired(100, callContext)).toBe(1);
  expect(await attempt(other, decide("accepted"))).toMatchObject({ replayed: false });
  advance(1000 * HOUR);
  expect(await keys.removeExpired(100, callContext)).toBe(1);
});
