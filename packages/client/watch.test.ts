import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Deps } from "./calls.ts";
import { PetstoreError } from "./errors.ts";
import { failure } from "./fixtures/failure.ts";
import { EventType } from "./gen/petstore/common/v1/watch_pb.ts";
import {
  PetService,
  type WatchPetsRequest,
  type WatchPetsResponseSchema,
} from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { createPetstore, petstoreWith } from "./petstore.ts";
import type { Pet } from "./records.ts";
import { type Change, type Present, resumed, type SnapshotMark, type StreamItem, type WatchOptions } from "./watch.ts";

type Message = MessageInitShape<typeof WatchPetsResponseSchema>;
type Serve = (request: WatchPetsRequest, context: HandlerContext) => AsyncIterable<Message>;

const SILENCE_MS = 45_000;

/** Pauses that take no time, and a stream's silence that never gets too long. */
function deps(pauses: number[] = [], random = 1): Deps {
  const sleep = async (ms: number) => (ms === SILENCE_MS ? new Promise<void>(() => {}) : void pauses.push(ms));
  return { clock: () => 0, random: () => random, sleep };
}

const petsOf = (watchPets: Serve, own: Deps = deps()) =>
  petstoreWith({ transport: createRouterTransport(({ service }) => service(PetService, { watchPets })) }, own).pets;

/** One stream after the other; one more than these is a mistake that nothing repeats. */
function inTurn(...streams: Serve[]) {
  const asked: WatchPetsRequest[] = [];
  const serve: Serve = (request, context) => {
    asked.push(request);
    const next = streams.shift();
    if (!next) throw failure("VALIDATION_FAILED", Code.InvalidArgument);
    return next(request, context);
  };
  return { serve, asked, tokens: () => asked.map(({ resumeToken }) => resumeToken) };
}

const told = (n: number, type: EventType = EventType.UPDATED): Message => ({
  resumeToken: `after ${n}`,
  response: { case: "event", value: { id: `${n}`, type, time: { seconds: BigInt(n) }, pet: { id: BigInt(n) } } },
});
const present = (n: number): Message => ({
  resumeToken: `after ${n}`,
  response: { case: "event", value: { id: `${n}`, type: EventType.PRESENT, pet: { id: BigInt(n) } } },
});
const heartbeat = (n: number): Message => ({ resumeToken: `after ${n}`, response: { case: "heartbeat", value: {} } });
const synced = (n: number): Message => ({ resumeToken: `after ${n}`, response: { case: "synced", value: {} } });

/** Says all of this, and ends: by an error, if there is one. */
const saying = (messages: readonly Message[], error?: Error): Serve =>
  async function* () {
    yield* messages;
    if (error) throw error;
  };
const failing = (error: Error) => saying([], error);
const unavailable = () => failure("UNAVAILABLE", Code.Unavailable);

/** Resolves when the stream's caller has gone. */
const left = ({ signal }: HandlerContext) =>
  new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve())));

async function take<T>(changes: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const change of changes) if (taken.push(change) === count) break;
  return taken;
}

const shown = (change: Change<Pet> | Present<Pet> | SnapshotMark) =>
  "id" in change ? `${change.type} ${change.id}` : change.type;

const caught = async (changes: AsyncIterable<unknown>): Promise<PetstoreError> => {
  try {
    await take(changes, Number.POSITIVE_INFINITY);
  } catch (error) {
    if (error instanceof PetstoreError) return error;
    throw error;
  }
  return expect.unreachable("it ended");
};

describe("a watch goes on where its stream ended", () => {
  test.each<[string, () => Error | undefined]>([
    ["in good order", () => undefined],
    ["with its process", unavailable],
    ["for it was read too slowly", () => failure("SLOW_CONSUMER", Code.ResourceExhausted)],
    ["for there were too many", () => failure("TOO_MANY_STREAMS", Code.ResourceExhausted)],
    ["for want of room", () => failure("OVERLOADED", Code.Unavailable)],
    ["at its rate", () => failure("RATE_LIMITED", Code.ResourceExhausted)],
    ["with its time", () => new ConnectError("over", Code.DeadlineExceeded)],
    ["cancelled on the way", () => new ConnectError("the stream was reset", Code.Canceled)],
    ["with its connection", () => new Error("socket hang up")],
    ["with its credential", () => failure("UNAUTHENTICATED", Code.Unauthenticated)],
  ])("%s: nothing is missing and nothing comes twice", async (_, error) => {
    const all = Array.from({ length: 25 }, (_, i) => i + 1);
    const pets = petsOf(async function* ({ resumeToken }) {
      const next = Number(resumeToken.slice("after ".length)) + 1;
      yield told(next);
      const thrown = error();
      if (thrown) throw thrown;
    });
    const changes = await take(pets.watch({ resumeToken: "after 0" }), all.length);
    expect(changes.map(({ id }) => Number(id))).toEqual(all);
  });

  test("with its credential, by another one; and not at all if there is none", async () => {
    const isGood = ({ requestHeader }: HandlerContext) => requestHeader.get("authorization") !== "Bearer none";
    const credentials = ["first", "second", "none", "none"];
    const shown: string[] = [];
    const watchPets: Serve = async function* ({ resumeToken }, context) {
      if (isGood(context)) yield told(Number(resumeToken.slice("after ".length)) + 1);
      throw failure("UNAUTHENTICATED", Code.Unauthenticated);
    };
    const transport = createRouterTransport(({ service }) => service(PetService, { watchPets }));
    const credential = () => {
      shown.push(credentials.shift() ?? "");
      return shown.at(-1) ?? "";
    };
    const { pets } = petstoreWith({ transport, credential }, deps());
    const changes = pets.watch({ resumeToken: "after 0" });
    expect((await take(changes, 2)).map(({ id }) => id)).toEqual(["1", "2"]);
    expect((await caught(pets.watch())).code).toBe("UNAUTHENTICATED");
    expect(shown).toEqual(["first", "second", "none"]);
  });

  test("and says when a stream has begun, and when and by what it has ended", async () => {
    const { serve } = inTurn(
      saying([heartbeat(1), told(2)]),
      failing(unavailable()),
      saying([told(3)], unavailable()),
      saying([told(4)]),
    );
    const heard: string[] = [];
    const onConnection = (isOpen: boolean, error?: PetstoreError) =>
      heard.push(isOpen ? "open" : (error?.code ?? "ended"));
    await take(petsOf(serve).watch({}, { onConnection }), 3);
    expect(heard).toEqual(["open", "ended", "UNAVAILABLE", "open", "UNAVAILABLE", "open"]);
  });

  test("with the filter of the first", async () => {
    const { serve, asked } = inTurn(saying([told(1)]), saying([told(2)]));
    await take(petsOf(serve).watch({ petId: 7, categoryId: 3 }), 2);
    expect(asked.map(({ petId, categoryId, resumeToken }) => ({ petId, categoryId, resumeToken }))).toEqual([
      { petId: [7n], categoryId: 3n, resumeToken: "" },
      { petId: [7n], categoryId: 3n, resumeToken: "after 1" },
    ]);
  });

  test("after a heartbeat, too", async () => {
    const { serve, tokens } = inTurn(saying([told(1), heartbeat(5)]), saying([told(6)]));
    expect((await take(petsOf(serve).watch(), 2)).map(shown)).toEqual(["updated 1", "updated 6"]);
    expect(tokens()).toEqual(["", "after 5"]);
  });

  test("after what only a later version knows, which is left out", async () => {
    const later = [told(2, 99 as EventType), { resumeToken: "after 3" }, told(4, EventType.UNSPECIFIED)];
    const { serve, tokens } = inTurn(saying([told(1), ...later]), saying([told(5)]));
    expect((await take(petsOf(serve).watch(), 2)).map(shown)).toEqual(["updated 1", "updated 5"]);
    expect(tokens()).toEqual(["", "after 4"]);
  });

  test("when it said nothing for 45 s", async () => {
    const silences: (() => void)[] = [];
    const silent = Promise.withResolvers<HandlerContext>();
    const { serve, tokens } = inTurn(
      async function* (_, context) {
        yield told(1);
        silent.resolve(context);
        await left(context);
      },
      saying([told(2)]),
    );
    const sleep = (ms: number) =>
      ms === SILENCE_MS ? new Promise<void>((resolve) => silences.push(resolve)) : Promise.resolve();
    const taken = take(petsOf(serve, { ...deps(), sleep }).watch(), 2);
    const context = await silent.promise;
    expect(silences).toHaveLength(2); // one that was broken, and one that lasts
    silences[0]?.();
    await new Promise(setImmediate);
    expect(context.signal.aborted).toBe(false);
    silences[1]?.();
    expect((await taken).map(({ id }) => id)).toEqual(["1", "2"]);
    expect(tokens()).toEqual(["", "after 1"]);
  });
});

describe("a watch whose credential does not come", () => {
  const never = () => new Promise<string>(() => {});

  test("ends when its signal is aborted", async () => {
    const unsent = () => expect.unreachable("it was sent");
    const rpc = createPetstore({ transport: { unary: unsent, stream: unsent }, credential: never });
    const http = createPetstore({ baseUrl: "http://petstore.test", fetch: unsent, credential: never });
    const watches = [
      (options: WatchOptions) => rpc.pets.watch({}, options),
      (options: WatchOptions) => http.watch({}, options),
    ];
    for (const watch of watches) {
      const gone = new AbortController();
      const next = watch({ signal: gone.signal }).next();
      gone.abort();
      expect(await next).toEqual({ done: true, value: undefined });
    }
  });

  test("asks for another one after 45 s", async () => {
    let silences = 0;
    const sleep = async (ms: number, signal?: AbortSignal) => {
      if (ms < SILENCE_MS || (ms === SILENCE_MS && ++silences === 1)) return;
      await new Promise<void>((r) => (signal?.aborted ? r() : signal?.addEventListener("abort", () => r())));
    };
    const credentials = [never(), "second"];
    const transport = createRouterTransport(({ service }) =>
      service(PetService, { watchPets: inTurn(saying([told(1)])).serve }),
    );
    const credential = async () => credentials.shift() ?? expect.unreachable();
    const { pets } = petstoreWith({ transport, credential }, { ...deps(), sleep });
    expect((await take(pets.watch(), 1)).map(shown)).toEqual(["updated 1"]);
  });
});

describe("pauses between streams", () => {
  test("grow up to 10 s, and are short again once something was heard", async () => {
    const away = Array.from({ length: 9 }, () => failing(unavailable()));
    const { serve } = inTurn(saying([told(1)]), ...away, saying([told(2)]), saying([told(3)]));
    const pauses: number[] = [];
    await take(petsOf(serve, deps(pauses)).watch(), 3);
    expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 100]);
  });

  test("are drawn", async () => {
    const { serve } = inTurn(saying([told(1)]), failing(unavailable()), saying([told(2)]));
    const pauses: number[] = [];
    await take(petsOf(serve, deps(pauses, 0.25)).watch(), 2);
    expect(pauses).toEqual([25, 50]);
  });

  test("are as long as the petstore asks for", async () => {
    const busy = failure("OVERLOADED", Code.Unavailable, { "retry-after": "7" });
    const { serve } = inTurn(saying([told(1)]), failing(busy), saying([told(2)]));
    const pauses: number[] = [];
    await take(petsOf(serve, deps(pauses, 0)).watch(), 2);
    expect(pauses).toEqual([0, 7_000]);
  });
});

describe("a snapshot", () => {
  test("is marked at its beginning and its end, and goes on where it was broken off", async () => {
    const { serve, tokens } = inTurn(
      saying([present(1), present(2)]),
      saying([present(3)], unavailable()),
      saying([synced(4), told(5, EventType.CREATED), told(6, EventType.DELETED)]),
    );
    const changes = await take(petsOf(serve).watch({ snapshot: true }), 7);
    expect(changes.map(shown)).toEqual([
      "snapshot",
      "present 1",
      "present 2",
      "present 3",
      "synced",
      "created 5",
      "deleted 6",
    ]);
    expect(tokens()).toEqual(["", "after 2", "after 3"]);
  });

  test("is not begun for who could not be heard", async () => {
    const { serve } = inTurn(failing(unavailable()), saying([synced(0)]));
    expect((await take(petsOf(serve).watch({ snapshot: true }), 2)).map(shown)).toEqual(["snapshot", "synced"]);
  });

  test("is begun again when what has changed is no longer known", async () => {
    const expired = failure("EVENTS_EXPIRED", Code.OutOfRange);
    const { serve, tokens } = inTurn(failing(expired), saying([present(7), synced(8)]));
    const changes = await take(petsOf(serve).watch({ snapshot: true, resumeToken: "of last week" }), 3);
    expect(changes.map(shown)).toEqual(["snapshot", "present 7", "synced"]);
    expect(tokens()).toEqual(["of last week", ""]);
  });

  test("is not begun again for ever", async () => {
    const expired = () => failure("EVENTS_EXPIRED", Code.OutOfRange);
    const { serve } = inTurn(failing(expired()), failing(expired()));
    const error = await caught(petsOf(serve).watch({ snapshot: true, resumeToken: "of last week" }));
    expect(error.code).toBe("EVENTS_EXPIRED");
  });
});

describe("a watch ends", () => {
  test.each([
    ["when what has changed is no longer known", failure("EVENTS_EXPIRED", Code.OutOfRange), "EVENTS_EXPIRED"],
    ["when it is refused", failure("PERMISSION_DENIED", Code.PermissionDenied), "PERMISSION_DENIED"],
    ["when it asks for what is not there", failure("VALIDATION_FAILED", Code.InvalidArgument), "VALIDATION_FAILED"],
    ["by a reason of a later version", failure("PET_ASLEEP", Code.FailedPrecondition), "PET_ASLEEP"],
  ])("%s", async (_, error, reason) => {
    const { serve, asked } = inTurn(saying([told(1)]), failing(error));
    expect((await caught(petsOf(serve).watch())).code).toBe(reason);
    expect(asked).toHaveLength(2);
  });

  test("after four attempts when nobody was ever there", async () => {
    const { serve, asked } = inTurn(...Array.from({ length: 9 }, () => failing(new Error("connection refused"))));
    expect((await caught(petsOf(serve).watch())).code).toBe("UNREACHABLE");
    expect(asked).toHaveLength(4);
  });

  test("after four attempts when nothing was ever heard, which is no cancellation", async () => {
    const pauses: number[] = [];
    const sleep = async (ms: number) => void (ms !== SILENCE_MS && pauses.push(ms)); // what is silent is so at once
    expect((await caught(petsOf(saying([]), { ...deps(), sleep }).watch())).code).toBe("UNREACHABLE");
    expect(pauses).toHaveLength(3);
  });

  test("and its stream with it, when its loop is left", async () => {
    const closed = Promise.withResolvers<void>();
    const { serve } = inTurn(async function* (_, context) {
      void left(context).then(closed.resolve);
      yield told(1);
    });
    await take(petsOf(serve).watch(), 1);
    await closed.promise;
  });

  test("and its stream with it, when its signal is aborted", async () => {
    const gone = new AbortController();
    const closed = Promise.withResolvers<void>();
    const { serve, asked } = inTurn(async function* (_, context) {
      void left(context).then(closed.resolve);
      yield told(1);
      gone.abort();
      await closed.promise;
    });
    expect(await Array.fromAsync(petsOf(serve).watch({}, { signal: gone.signal }))).toHaveLength(1);
    await closed.promise;
    expect(asked).toHaveLength(1);
  });

  test.each([
    ["what its stream still tells is left out", saying([told(2), told(3)])],
    ["what its stream ends with is no error", failing(failure("PERMISSION_DENIED", Code.PermissionDenied))],
  ])("when its signal is aborted: %s", async (_, then) => {
    const gone = new AbortController();
    const open = async function* (): AsyncGenerator<StreamItem> {
      yield { resumeToken: "after 1", event: { id: "1" } };
      gone.abort();
      for await (const { resumeToken = "" } of then(undefined as never, undefined as never))
        yield { resumeToken, event: { id: resumeToken } };
    };
    const events = resumed("watch", open, {}, { signal: gone.signal }, { ...deps(), logger: undefined });
    expect(await Array.fromAsync(events)).toEqual([{ id: "1", resumeToken: "after 1" }]);
  });

  test("at once when its signal is aborted at the beginning of a snapshot", async () => {
    const gone = new AbortController();
    const { serve } = inTurn(saying([present(1)]));
    const told: string[] = [];
    for await (const change of petsOf(serve).watch({ snapshot: true }, { signal: gone.signal })) {
      told.push(shown(change));
      gone.abort();
    }
    expect(told).toEqual(["snapshot"]);
  });

  test("without a pause when its signal is aborted and its stream ends", async () => {
    const gone = new AbortController();
    const open = async function* (): AsyncGenerator<StreamItem> {
      yield { resumeToken: "after 1" };
      gone.abort();
    };
    const pauses: number[] = [];
    const events = resumed("watch", open, {}, { signal: gone.signal }, { ...deps(pauses), logger: undefined });
    expect(await Array.fromAsync(events)).toEqual([]);
    expect(pauses).toEqual([]);
  });

  test("at once when its signal was aborted before", async () => {
    const { serve, asked } = inTurn(saying([told(1)]));
    expect(await Array.fromAsync(petsOf(serve).watch({}, { signal: AbortSignal.abort() }))).toEqual([]);
    expect(asked).toEqual([]);
  });

  test("when its signal is aborted in a pause", async () => {
    const gone = new AbortController();
    const { serve, asked } = inTurn(saying([told(1)]));
    const sleep = (ms: number, signal?: AbortSignal) => {
      if (ms !== SILENCE_MS) gone.abort();
      return new Promise<void>((resolve) =>
        signal?.aborted ? resolve() : signal?.addEventListener("abort", () => resolve()),
      );
    };
    expect(await Array.fromAsync(petsOf(serve, { ...deps(), sleep }).watch({}, { signal: gone.signal }))).toHaveLength(
      1,
    );
    expect(asked).toHaveLength(1);
  });
});

describe("all kinds of records by one stream", () => {
  /** Answers each request with the next of these. */
  function answering(...answers: Response[]) {
    const asked: string[] = [];
    const fetch = async (url: unknown, init?: RequestInit) => {
      const { search } = new URL(`${url}`);
      asked.push(`${search} ${new Headers(init?.headers).get("authorization")}`);
      return (
        answers.shift() ??
        Response.json({ code: "INVALID_QUERY", message: "one too many", status: 400 }, { status: 400 })
      );
    };
    const own = { baseUrl: "http://petstore.test/", fetch: fetch as typeof globalThis.fetch, credential: "psk_1" };
    return { asked, ...petstoreWith(own, deps()) };
  }
  const headers = { "content-type": "application/x-ndjson" };
  const lines = (...all: object[]) =>
    new Response(all.map((line) => `${JSON.stringify(line)}\n`).join(""), { headers });
  const event = (type: string, n: number, data: object = { id: n }) => ({
    id: `after ${n}`,
    event: `petstore.${type}.v1`,
    data: { id: `${n}`, time: "2027-01-15T08:00:00Z", etag: '"1"', data },
  });
  const refused = (code: string, status: number, headers = {}) =>
    Response.json(
      { code, message: "It went wrong.", status },
      { status, headers: { "x-request-id": "r-1", ...headers } },
    );

  test("it goes on where it ended, with its filter", async () => {
    const { watch, asked } = answering(
      lines({ id: "after 0" }, event("pet.present", 1), event("synced", 2)),
      refused("TOO_MANY_STREAMS", 429),
      lines(event("order.created", 3), { id: "after 4", event: "error", data: { code: "SLOW_CONSUMER", status: 429 } }),
      lines(event("pet.deleted", 5)),
    );
    const changes = await take(watch({ types: ["pet", "order"], petId: [1, 2], snapshot: true }), 5);
    expect(changes).toEqual([
      { type: "snapshot" },
      {
        type: "present",
        recordType: "pet",
        id: "1",
        time: expect.anything(),
        record: { id: 1, etag: '"1"' },
        resumeToken: "after 1",
      },
      { type: "synced", resumeToken: "after 2" },
      {
        type: "created",
        recordType: "order",
        id: "3",
        time: "2027-01-15T08:00:00Z",
        record: { id: 3, etag: '"1"' },
        resumeToken: "after 3",
      },
      {
        type: "deleted",
        recordType: "pet",
        id: "5",
        time: expect.anything(),
        record: { id: 5, etag: '"1"' },
        resumeToken: "after 5",
      },
    ]);
    const filter = "?types=pet%2Corder&petId=1%2C2&snapshot=true";
    const token = (n: number) => `${filter}&lastEventId=after+${n} Bearer psk_1`;
    expect(asked).toEqual([`${filter} Bearer psk_1`, token(2), token(2), token(3)]);
  });

  test.each([
    ["a refusal", refused("PERMISSION_DENIED", 403), { code: "PERMISSION_DENIED", status: 403, requestId: "r-1" }],
    ["a line that is none", new Response("<h1>\n", { headers }), { code: "UNREACHABLE", status: 0 }],
    [
      "a page",
      new Response("<h1>\n"),
      { code: "UNREACHABLE", message: expect.stringContaining("200 with text/plain") },
    ],
    ["a page without a whole line", new Response("<h1>"), { code: "UNREACHABLE", status: 0 }],
    ["another server", new Response("", { status: 502 }), { code: "UNREACHABLE", message: "no petstore answers: 502" }],
  ])("it fails by %s", async (_, answer, error) => {
    const others = Array.from({ length: 3 }, () => answer.clone());
    expect(await caught(answering(answer, ...others).watch())).toMatchObject(error);
  });

  test("an empty list means all", async () => {
    const { watch, asked } = answering(lines(event("pet.created", 1)));
    await take(watch({ types: [], petId: [] }), 1);
    expect(asked).toEqual([" Bearer psk_1"]);
  });

  test("its types are those that are asked for", async () => {
    for await (const change of answering(lines(event("pet.created", 1))).watch({ types: ["pet", "category"] })) {
      const type: "created" | "updated" | "deleted" = change.type;
      expect(type).toBe("created");
      if (change.recordType === "pet") expect(change.record.status).toBe(undefined);
      // @ts-expect-error Categories have no status.
      else change.record.status;
      break;
    }
  });
});

test("a change has its record and its time, and its type says what it is", async () => {
  const pets = petsOf(inTurn(saying([told(86_400)])).serve);
  for await (const change of pets.watch()) {
    const type: "created" | "updated" | "deleted" = change.type; // no others without a snapshot
    expect([type, change.record.id, change.time, change.resumeToken]).toEqual([
      "updated",
      86_400,
      "1970-01-02T00:00:00Z",
      "after 86400",
    ]);
    break;
  }
  for await (const change of petsOf(inTurn(saying([present(1)])).serve).watch({ snapshot: true })) {
    // @ts-expect-error The beginning of a snapshot has no record.
    change.record;
    if (change.type === "snapshot") continue;
    if (change.type !== "synced") expect(change.record.id).toBe(1);
    break;
  }
});
