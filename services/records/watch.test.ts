/** What every stream of changes promises, by the example of categories. */
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import type { StreamingCall } from "@petstore/rpc/server/handlers";
import type { Runtime } from "@petstore/runtime/clock";
import type { Collection, Store } from "@petstore/store/port";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { beforeEach, describe, expect, test } from "vitest";
import { reasonOf } from "#errors";
import {
  CategoryEventSchema,
  CategoryService,
  WatchCategoriesResponseSchema,
} from "#proto/petstore/category/v1/category_service_pb.ts";
import { EventType } from "#proto/petstore/common/v1/watch_pb.ts";
import { Membership } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { createCategoryService } from "../category/service.ts";
import { startTestService, type TestService, testClock } from "./fixtures/service.ts";
import { brief, typeName, watching } from "./fixtures/watching.ts";
import { RETENTION } from "./retention.ts";
import { createWatch, type EventAttributes, HEARTBEAT_MS, writeResumeToken } from "./watch.ts";

let time: ReturnType<typeof testClock>;
let service: TestService;
/** Those that read changes now. */
let readers: Set<AbortSignal>;
/** What happens before the next list is read. */
let beforeList: (() => Promise<unknown>) | undefined;

function noting(store: Store): Store {
  const collection = async (schema: never) => {
    const inner = (await store.collection(schema)) as Collection<never>;
    const changes: typeof inner.changes = (options) => {
      if (!options.signal.aborted) readers.add(options.signal);
      options.signal.addEventListener("abort", () => readers.delete(options.signal));
      return inner.changes(options);
    };
    const list: typeof inner.list = async (...query) => {
      const before = beforeList;
      beforeList = undefined;
      await before?.();
      return inner.list(...query);
    };
    return { ...inner, changes, list };
  };
  return { ...store, collection } as Store;
}
beforeEach(async () => {
  time = testClock();
  readers = new Set();
  beforeList = undefined;
  const pets = { closeCategory: async () => ({ membership: Membership.NONE }), openCategory: async () => ({}) };
  service = await startTestService(
    (deps) => createCategoryService({ ...deps, store: noting(deps.store) }, { pets } as never),
    time,
  );
});

const client = () => service.client(CategoryService);
const watch = (request: Parameters<ReturnType<typeof client>["watchCategories"]>[0] = {}) =>
  watching(client().watchCategories(request));
const make = async (name = "dogs") => (await client().createCategory({ category: { name } })).category?.id ?? 0n;
const makeMany = (count: number) => Promise.all(Array.from({ length: count }, () => make()));
const rename = async (categoryId: bigint, name: string) =>
  (await client().updateCategory({ categoryId, category: { name } })).category;
const remove = (categoryId: bigint) => client().deleteCategory({ categoryId });
const failure = async (call: Promise<unknown>) => {
  const error = await call.then(() => expect.fail("no error"), ConnectError.from);
  return { reason: reasonOf(error)?.reason, message: error.rawMessage, error };
};

describe("a stream", () => {
  test("tells each change as it happens, with the record as a GET showed it", async () => {
    const changes = watch();
    const first = await changes.first();
    expect(brief(first)).toBe("heartbeat");
    const id = await make();
    const shown = [(await client().getCategory({ categoryId: id })).category, await rename(id, "cats")];
    await remove(id);
    const events = await changes.events(3);
    expect(events.map(({ type }) => typeName(type))).toEqual(["CREATED", "UPDATED", "DELETED"]);
    expect(events.map(({ category }) => category)).toEqual([...shown, shown[1]]);
    expect(new Set(events.map((event) => event.id)).size).toBe(3);
    for (const event of events) expect(event.time && timestampMs(event.time)).toBe(time.clock());
  });

  test("tells nothing of what was refused or changed nothing", async () => {
    const id = await make();
    const changes = watch();
    await changes.first();
    await rename(id, "dogs");
    await failure(client().updateCategory({ categoryId: id, category: { name: "x" }, etag: '"9"' }));
    await rename(id, "cats");
    expect((await changes.take(1)).map(brief)).toEqual([expect.stringMatching(/^UPDATED/)]);
  });

  test("tells only of the records that were asked for", async () => {
    const [one, two] = [await make(), await make()];
    const changes = watch({ categoryId: [two] });
    await changes.first();
    await rename(one, "a");
    await rename(two, "b");
    expect((await changes.events(1)).map(({ category }) => category?.id)).toEqual([two]);
  });

  test("lasts, and shows that it does", async () => {
    const changes = watch();
    await changes.first();
    for (let hour = 0; hour < 3; hour++) {
      const next = changes.next();
      await vacant();
      time.advance(HEARTBEAT_MS - 1);
      await vacant();
      time.advance(1);
      expect(brief((await next) as never)).toBe("heartbeat");
      time.advance(3_600_000);
      expect((await changes.take(1)).map(brief)).toEqual(["heartbeat"]);
    }
  });

  test("has no heartbeat as long as there is something else to tell", async () => {
    const changes = watch();
    await changes.first();
    const id = await make();
    await changes.first();
    for (let i = 0; i < 4; i++) {
      const next = changes.next();
      await vacant();
      time.advance(HEARTBEAT_MS - 1);
      await rename(id, `${i}`);
      expect(brief((await next) as never)).toMatch(/^UPDATED/);
    }
  });

  test("has heartbeats that move on where others are told of changes", async () => {
    const [one, two] = [await make(), await make()];
    const changes = watch({ categoryId: [two] });
    const first = await changes.first();
    const next = changes.next();
    for (let i = 0; i < 4; i++) {
      await rename(one, `${i}`);
      await vacant();
      time.advance(HEARTBEAT_MS / 4);
    }
    const heartbeat = await next;
    expect(heartbeat && brief(heartbeat)).toBe("heartbeat");
    expect(heartbeat?.resumeToken).not.toBe(first.resumeToken);
    const rest = watch({ resumeToken: heartbeat?.resumeToken ?? "" });
    await rest.first();
    await rename(one, "last");
    expect((await rest.events(1)).map(({ category }) => category?.name)).toEqual(["last"]);
  });

  test("that is read slowly never shows a place behind what it has not told", async () => {
    const id = await make();
    const changes = watch();
    await changes.take(1);
    await rename(id, "first");
    await changes.events(1);
    time.advance(2 * HEARTBEAT_MS);
    expect((await changes.take(1)).map(brief)).toEqual(["heartbeat"]);
    time.advance(2 * HEARTBEAT_MS);
    for (const name of ["a", "b", "c"]) await rename(id, name);
    const [next] = await changes.take(1);
    const rest = await watch({ resumeToken: next?.resumeToken ?? "" }).events(2);
    expect([next && brief(next), ...rest.map(({ category }) => category?.name)]).toEqual([
      "UPDATED category-1-3",
      "b",
      "c",
    ]);
  });

  test("whose caller has gone leaves nothing behind, whether it waited or not", async () => {
    const gone = new AbortController();
    const open = () => watching(client().watchCategories({}, { signal: gone.signal }));
    const [waiting, other] = [open(), open()];
    await waiting.first();
    await other.first();
    const end = failure(waiting.next());
    await vacant();
    expect([readers.size, time.asleep()]).toEqual([2, 1]);
    gone.abort();
    await end;
    await vacant();
    expect([readers.size, time.asleep()]).toEqual([0, 0]);
  });

  test("that fails leaves nothing behind", async () => {
    beforeList = () => Promise.reject(new TypeError("as it happens"));
    const changes = watch({ snapshot: true });
    await changes.first();
    expect(readers.size).toBe(1);
    expect((await failure(changes.first())).reason).toBe("INTERNAL");
    expect(readers.size).toBe(0);
  });

  test("is ended when it is too slow, and goes on where it was", async () => {
    const id = await make();
    const changes = watch();
    await changes.first();
    await rename(id, "first");
    const { resumeToken } = await changes.first();
    // Nobody waits for it: all of these are answered before it reads on.
    const description = "x".repeat(2000);
    const count = 2200;
    for (let i = 0; i < count; i++)
      await client().updateCategory({ categoryId: id, category: { name: `${i}`, description } });
    const { reason, error } = await failure(changes.rest());
    expect(reason).toBe("SLOW_CONSUMER");
    const [info] = error.findDetails(ErrorInfoSchema);
    expect(info?.metadata).toEqual({ resumeToken });
    const rest = await watch({ resumeToken }).events(count);
    expect(rest.map(({ category }) => category?.name)).toEqual(Array.from({ length: count }, (_, i) => `${i}`));
  });
});

describe("a resume token", () => {
  test("goes on after its message, with the same ids of events, also in another process", async () => {
    const changes = watch();
    const first = await changes.first();
    const id = await make();
    await rename(id, "a");
    await rename(id, "b");
    await remove(id);
    const messages = [first, ...(await changes.take(4))];
    await service.restart();
    for (const [i, { resumeToken }] of messages.slice(0, -1).entries()) {
      const again = watch({ resumeToken });
      const begin = await again.first();
      expect([brief(begin), begin.resumeToken]).toEqual(["heartbeat", resumeToken]);
      const rest = await again.take(messages.length - 1 - i);
      expect(rest.map(({ response }) => response)).toEqual(messages.slice(i + 1).map(({ response }) => response));
    }
  });

  test("that is none, or one of other records, is refused, and says what to do", async () => {
    const { resumeToken } = await watch().first();
    const [, position = "", , bound = ""] = (await watch({ snapshot: true }).first()).resumeToken.split(".");
    const wrong = [
      "x",
      resumeToken.slice(0, -1),
      resumeToken.slice(1),
      resumeToken.replace("0", "1"),
      `${resumeToken}.${resumeToken}`,
      writeResumeToken("order", { position: "1" }),
      writeResumeToken("category", { position: "1.2.3.4" }),
      ...[-5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, "" as never].map((after) =>
        writeResumeToken("category", { position, snapshot: { after, bound } }),
      ),
    ];
    for (const token of wrong) {
      const { reason, message } = await failure(watch({ resumeToken: token }).next());
      expect([reason, message], token).toEqual([
        "VALIDATION_FAILED",
        expect.stringMatching(/^resume_token: .*Begin again/),
      ]);
    }
    const long = await failure(watch({ resumeToken: "x".repeat(2049) }).next());
    expect(long.reason).toBe("VALIDATION_FAILED");
  });

  test("expires with the changes that follow it", async () => {
    const { resumeToken } = await watch().first();
    const id = await make();
    time.advance(RETENTION.eventsMs);
    await service.runWorkers();
    expect(await watch({ resumeToken }).events(1)).toHaveLength(1);
    await rename(id, "cats");
    time.advance(RETENTION.eventsMs);
    await service.runWorkers();
    expect(await watch({ resumeToken }).events(1)).toHaveLength(1);
    await rename(id, "dogs");
    time.advance(RETENTION.eventsMs + 1);
    await service.runWorkers();
    const { reason, message } = await failure(watch({ resumeToken }).next());
    expect([reason, message]).toEqual(["EVENTS_EXPIRED", expect.stringContaining("Begin again with a snapshot")]);
  });

  test("that was never given out has expired as well", async () => {
    const resumeToken = writeResumeToken("category", { position: "x" });
    expect((await failure(watch({ resumeToken }).next())).reason).toBe("EVENTS_EXPIRED");
  });
});

describe("a snapshot", () => {
  test("tells all that is there, then that it is complete, then what follows", async () => {
    const ids = await makeMany(3);
    await remove(ids[1] as bigint);
    const changes = watch({ snapshot: true });
    const messages = await changes.take(4);
    expect(messages.map(brief)).toEqual(["heartbeat", "PRESENT category-1-1", "PRESENT category-3-1", "synced"]);
    const present = messages.flatMap(({ response }) => (response.case === "event" ? response.value : []));
    expect(present.map(({ category }) => category)).toEqual(
      (await client().listCategories({ orderBy: "id" })).categories,
    );
    expect(present.map((event) => event.time)).toEqual([undefined, undefined]);
    await rename(1n, "cats");
    expect((await changes.take(1)).map(brief)).toEqual(["UPDATED category-1-2"]);
  });

  test("of nothing is complete at once", async () => {
    expect((await watch({ snapshot: true }).take(2)).map(brief)).toEqual(["heartbeat", "synced"]);
  });

  test("tells only the records that were asked for", async () => {
    await makeMany(5);
    const messages = await watch({ snapshot: true, categoryId: [4n, 2n, 9n] }).take(4);
    expect(messages.map(brief).slice(1)).toEqual(["PRESENT category-2-1", "PRESENT category-4-1", "synced"]);
  });

  test("is followed by all that was changed since it began", async () => {
    const ids = await makeMany(101);
    beforeList = async () => {
      await rename(ids[0] as bigint, "before the list");
      await make("new");
      await remove(ids[1] as bigint);
    };
    const changes = watch({ snapshot: true });
    const told = new Map<bigint | undefined, string | undefined>();
    const note = ({ response }: Awaited<ReturnType<typeof changes.take>>[0]) => {
      if (response.case !== "event") return;
      const { type, category } = response.value;
      if (type === EventType.DELETED) told.delete(category?.id);
      else told.set(category?.id, category?.name);
    };
    for (const message of await changes.take(50)) note(message);
    await rename(ids[2] as bigint, "told before");
    await rename(ids[99] as bigint, "in the page that was read");
    await remove(ids[100] as bigint);
    for (let message = await changes.first(); brief(message) !== "synced"; message = await changes.first())
      note(message);
    await make("last");
    while ([...told.values()].at(-1) !== "last") note(await changes.first());
    const { categories } = await client().listCategories({});
    const more = await client().listCategories({ id: [101n, 1n, 2n, 3n] });
    const there = [...categories, ...more.categories].map(({ id, name }) => [id, name] as const);
    expect(new Map([...told].toSorted())).toEqual(new Map(there.toSorted()));
  });

  test("that broke goes on where it was, and misses nothing", async () => {
    const ids = await makeMany(250);
    const whole = (await watch({ snapshot: true }).take(252)).map(brief);
    for (const taken of [1, 2, 100, 101, 102, 250, 251]) {
      const first = watch({ snapshot: true });
      const before = await first.take(taken);
      const resumeToken = before.at(-1)?.resumeToken ?? "";
      const rest = watch({ resumeToken, snapshot: true });
      const after = await rest.take(253 - taken);
      expect([...before.map(brief), ...after.map(brief).slice(1)]).toEqual(whole);
      await rename(ids[0] as bigint, `${taken}`);
      expect((await rest.events(1)).map(({ category }) => category?.name)).toEqual([`${taken}`]);
      whole[1] = `PRESENT category-1-${1 + [1, 2, 100, 101, 102, 250, 251].indexOf(taken) + 1}`;
    }
  });

  test("is of no effect with the token of a change", async () => {
    await make();
    const changes = watch({ snapshot: true });
    const [, , synced] = await changes.take(3);
    await rename(1n, "cats");
    const again = await watch({ snapshot: true, resumeToken: synced?.resumeToken ?? "" }).take(2);
    expect(again.map(brief)).toEqual(["heartbeat", "UPDATED category-1-2"]);
  });

  test("goes on only with the filters that it began with; afterwards they may be others", async () => {
    await makeMany(2);
    const [, first, synced] = await watch({ snapshot: true, categoryId: [1n] }).take(3);
    const { reason, message } = await failure(watch({ resumeToken: first?.resumeToken ?? "" }).next());
    expect([reason, message]).toEqual(["VALIDATION_FAILED", expect.stringContaining("other filters")]);
    await rename(2n, "cats");
    expect(await watch({ resumeToken: synced?.resumeToken ?? "" }).events(1)).toHaveLength(1);
  });
});

describe("when the process stops", () => {
  test("a stream tells where to go on, and ends without an error", async () => {
    const changes = watch();
    await changes.first();
    const id = await make();
    await changes.first();
    const rest = changes.rest();
    await vacant();
    service.drain();
    const messages = await rest;
    expect(messages.map(brief)).toEqual(["heartbeat"]);
    await rename(id, "cats");
    const again = watch({ resumeToken: messages[0]?.resumeToken ?? "" });
    expect((await again.rest()).map(brief)).toEqual(["heartbeat", "heartbeat"]);
    await vacant();
    expect(readers.size).toBe(0);
    await service.restart();
    expect((await watch({ resumeToken: messages[0]?.resumeToken ?? "" }).events(1))[0]?.category?.name).toBe("cats");
  });

  test("a snapshot goes on elsewhere", async () => {
    await makeMany(150);
    const changes = watch({ snapshot: true });
    const before = await changes.take(120);
    service.drain();
    const last = await changes.rest();
    expect(last.map(brief)).toEqual(["heartbeat"]);
    await service.restart();
    const after = await watch({ resumeToken: last[0]?.resumeToken ?? "" }).take(33);
    expect([...before, ...after].map(brief).filter((one) => one.startsWith("PRESENT"))).toEqual(
      Array.from({ length: 150 }, (_, i) => `PRESENT category-${i + 1}-1`),
    );
    expect(after.at(-1)?.response.case).toBe("synced");
  });
});

/** Until what is under way waits for the clock or for a change. */
const vacant = async () => {
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
};

test("all who are told of a change are told by one message, which is encoded once", async () => {
  const change = { type: "updated", _id: 1, rev: 2, time: 0, shown: {}, position: "1" } as const;
  const changes = async () =>
    Object.assign(
      (async function* () {
        yield [change];
      })(),
      { position: "1" },
    );
  const toEvent = (attributes: EventAttributes) => create(CategoryEventSchema, attributes);
  const response = WatchCategoriesResponseSchema;
  const watched = { kind: "category", collection: { changes }, response, toEvent };
  const watching = createWatch(watched, time as Pick<Runtime, "clock" | "sleep">);
  const { signal } = new AbortController();
  const call = { signal, draining: signal, deadline: Number.POSITIVE_INFINITY } as StreamingCall;
  const filter = { source: () => ({ filter: [], ids: [] }) as never, matches: () => true };
  const told = () => Array.fromAsync(watching({ resumeToken: "", snapshot: false }, filter, call));
  const [[, first], [, second]] = await Promise.all([told(), told()]);
  expect(first).toMatchObject({ $typeName: response.typeName, response: { case: "event" } });
  expect(second).toBe(first);
});
