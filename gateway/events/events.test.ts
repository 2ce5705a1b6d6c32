/** GET /events: what the four services tell, over HTTP. */
import { connect as connectHttp2 } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { createAuthentication } from "@petstore/rpc/auth/authentication";
import { InvalidCredential } from "@petstore/rpc/auth/credentials";
import { jsonText } from "connect-transcoder";
import { createParser } from "eventsource-parser";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errors, rpcError } from "#errors";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { EventService, WatchEventsRequestSchema } from "#proto/petstore/event/v1/event_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { checkAgainstDocument } from "../../test/api/openapi-validator.ts";
import type { GatewayOptions } from "../app.ts";
import { authOf } from "../auth.ts";
import { cors } from "../cors.ts";
import { servedInProcess, startGateway, testLimits } from "../fixtures/gateway.ts";
import { petstoreDocument } from "../openapi.ts";
import { type FakeWatch, fakeServices } from "./fixtures/watches.ts";
import { readId } from "./place.ts";
import type { SourceName } from "./sources.ts";
import { eventTransport } from "./watch-events.ts";

const NAMES: readonly SourceName[] = ["pet", "category", "order", "inventory"];
const limits = { ...testLimits, rpcBytes: 1024 };
const document = JSON.parse(
  jsonText(petstoreDocument({ basePath: "", limits, deprecation: {}, rate: undefined, auth: undefined })),
);
const rex = { id: 7n, name: "Rex\u2028\n", categoryId: 1n, status: PetStatus.PENDING, etag: '"3"' };

let services: ReturnType<typeof fakeServices>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let readers: AbortController;
/** What the clock says; it moves with every sleep. */
let now: number;
beforeEach(() => {
  services = fakeServices();
  readers = new AbortController();
  now = 0;
});
afterEach(async () => {
  readers.abort();
  await gateway.app.close();
});

async function start(options: Partial<GatewayOptions> = {}, basePath = "") {
  const clock = () => now;
  const sleep = async (ms: number) => {
    now += ms;
  };
  const getPet = () => ({ pet: rex });
  gateway = await startGateway(
    PetService,
    {},
    {
      services: [
        { desc: PetService, transport: servedInProcess(PetService, { getPet }) },
        { desc: EventService, transport: eventTransport({ transports: services.transports, basePath, clock, sleep }) },
      ],
      basePath,
      ...options,
    },
  );
}

interface Seen {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: Record<string, unknown>;
  /** As it stands in the line. */
  readonly text: string;
}

/** Reads events, and the ids of heartbeats among them. */
async function read(target = "/events", headers: Record<string, string> = {}) {
  const response = await fetch(gateway.base + target, { headers, signal: readers.signal });
  const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const events: Seen[] = [];
  const ids: string[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => void events.push({ id, event, data: JSON.parse(data), text: data }),
    onId: (id) => void ids.push(id),
  });
  let isOver = false;
  const more = async () => {
    const { done, value } = (await chunks?.read()) ?? { done: true };
    isOver = done;
    if (value) parser.feed(value);
  };
  return {
    response,
    ids,
    async next(): Promise<Seen> {
      while (events.length === 0 && !isOver) await more();
      return events.shift() ?? expect.fail("the stream is over");
    },
    async nextId(): Promise<string> {
      while (ids.length === 0) await more();
      return ids.shift() as string;
    },
    async rest(): Promise<Seen[]> {
      while (!isOver) await more();
      return events;
    },
    unread: () => events,
    leave: () => chunks?.cancel(),
  };
}

/** Opens the watches of a request, each at the place "NAME-0". */
async function begun(target?: string, headers?: Record<string, string>, names = NAMES) {
  const reading = read(target, headers);
  const watches = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await services.watched(name)] as const)),
  ) as Record<SourceName, FakeWatch>;
  for (const name of names) watches[name].heartbeat(`${name}-0`);
  return { reader: await reading, ...watches };
}
const tokensIn = (id: string) => Object.fromEntries([...readId(id)].map(([name, { token }]) => [name, token]));

describe("an event", () => {
  test("is a CloudEvent whose data is the record as GET answers it", async () => {
    await start({}, "/api");
    const { reader, pet } = await begun("/api/events");
    pet.event("pet-1", "UPDATED", rex);
    const { id, event, data, text } = await reader.next();
    expect(event).toBe("petstore.pet.updated.v1");
    expect(data).toEqual({
      specversion: "1.0",
      id: "change-pet-1",
      source: "/api/pets",
      type: "petstore.pet.updated.v1",
      subject: "7",
      time: "2027-01-15T08:00:00Z",
      etag: '"3"',
      data: { id: 7, name: rex.name, categoryId: 1, status: "pending" },
    });
    const shown = await gateway.call("/api/pets/7");
    expect(text).toContain(`"data":${shown.text.replace("\u2028", "\\u2028")}}`);
    expect(data.etag).toBe(shown.headers.get("etag"));
    expect(tokensIn(id ?? "")).toEqual({
      pet: "pet-1",
      category: "category-0",
      order: "order-0",
      inventory: "inventory-0",
    });
  });

  test.each([
    ["category", "DELETED", { id: 2n, name: "dogs", etag: '"1"' }, "/categories", "2", { id: 2, name: "dogs" }],
    [
      "order",
      "CREATED",
      { id: 3n, petId: 7n, quantity: 1, complete: false, etag: '"1"' },
      "/store/orders",
      "3",
      { id: 3, petId: 7, quantity: 1, complete: false },
    ],
    [
      "inventory",
      "PRESENT",
      { petId: 7n, quantity: 5, status: PetStatus.AVAILABLE, etag: '"9"' },
      "/store/inventory",
      "7",
      { petId: 7, quantity: 5, status: "available" },
    ],
  ] as const)("of %s that is %s", async (name, type, record, source, subject, data) => {
    await start();
    const { reader, ...watches } = await begun();
    watches[name].event("1", type, record);
    const seen = await reader.next();
    const kind = `petstore.${name}.${type.toLowerCase()}.v1`;
    expect(seen.event).toBe(kind);
    expect(seen.data).toMatchObject({ id: "change-1", source, type: kind, subject, data });
    expect(seen.data.time === undefined).toBe(type === "PRESENT");
  });

  test("is a line of JSON where that is asked for", async () => {
    await start();
    const answer = gateway.call("/events?types=pet", { headers: { accept: "application/x-ndjson" } });
    const pet = await services.watched("pet");
    pet.heartbeat("pet-0");
    pet.event("pet-1", "UPDATED", rex);
    pet.end();
    const lines = (await answer).text.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {},
      { id: expect.any(String) },
      {
        id: expect.any(String),
        event: "petstore.pet.updated.v1",
        data: expect.objectContaining({ specversion: "1.0", subject: "7" }),
      },
    ]);
  });
});

test.each(["text/event-stream", "application/x-ndjson"])(
  "what a stream of %s tells is what the document says",
  async (accept) => {
    await start();
    const answer = gateway.call("/events?snapshot=true", { headers: { accept } });
    const records = {
      pet: rex,
      category: { id: 2n, name: "dogs", etag: '"1"' },
      order: { id: 3n, etag: '"1"' },
      inventory: { petId: 7n, quantity: 5, status: PetStatus.AVAILABLE, etag: '"9"' },
    };
    const watches = await Promise.all(NAMES.map(async (name) => ({ name, watch: await services.watched(name) })));
    for (const { name, watch } of watches) {
      watch.heartbeat("0");
      watch.event("1", "PRESENT", records[name]);
      watch.synced("2");
      for (const type of ["CREATED", "UPDATED", "DELETED"] as const) watch.event(type, type, records[name]);
    }
    await expect.poll(() => watches.map(({ watch }) => watch.taken)).toEqual([6, 6, 6, 6]);
    watches[0]?.watch.fail(rpcError("SLOW_CONSUMER", "Read faster."));
    const response = await answer;
    for (const { name } of watches)
      for (const type of ["present", "created", "updated", "deleted"])
        expect(response.text).toContain(`petstore.${name}.${type}.v1`);
    expect(response.text).toMatch(/petstore\.synced\.v1[\s\S]*SLOW_CONSUMER/);
    checkAgainstDocument(document, { method: "GET", target: "/events" }, response);
    const untold = { ...response, text: response.text.replace('"specversion":"1.0",', "") };
    expect(() => checkAgainstDocument(document, { method: "GET", target: "/events" }, untold)).toThrow("specversion");
  },
);

describe("the stream", () => {
  test("begins with a heartbeat that has a place in every service", async () => {
    await start();
    const { reader } = await begun();
    expect(reader.response.status).toBe(200);
    expect(tokensIn(await reader.nextId())).toEqual(Object.fromEntries(NAMES.map((name) => [name, `${name}-0`])));
  });

  test("passes on heartbeats, whose ids go on", async () => {
    await start();
    const { reader, order } = await begun();
    await reader.nextId();
    order.heartbeat("order-1");
    expect(tokensIn(await reader.nextId())).toMatchObject({ order: "order-1", pet: "pet-0" });
  });

  test("goes on behind an id in each of the services, and begins now where it has no place", async () => {
    await start();
    const { reader, pet } = await begun("/events?types=pet,order", {}, ["pet", "order"]);
    pet.event("pet-1", "UPDATED", rex);
    const { id = "" } = await reader.next();
    await reader.leave();
    const {
      pet: resumed,
      order,
      category,
    } = await begun("/events?types=pet,order,category&snapshot=true", { "last-event-id": id }, [
      "pet",
      "order",
      "category",
    ]);
    expect([resumed, order, category].map(({ request }) => [request.resumeToken, request.snapshot])).toEqual([
      ["pet-1", false],
      ["order-0", false],
      ["", true],
    ]);
  });

  test("of a snapshot says once that all of it is told, also when it was resumed in between", async () => {
    await start();
    const { reader, pet, order } = await begun("/events?types=pet,order&snapshot=true", {}, ["pet", "order"]);
    expect([pet, order].map(({ request }) => request.snapshot)).toEqual([true, true]);
    pet.event("pet-1", "PRESENT", rex);
    pet.synced("pet-2");
    expect((await reader.next()).event).toBe("petstore.pet.present.v1");
    order.heartbeat("order-1");
    let id = await reader.nextId();
    while (tokensIn(id).order !== "order-1") id = await reader.nextId();
    expect(reader.unread()).toEqual([]);
    await reader.leave();
    const resumed = await begun("/events?types=pet,order&snapshot=true", { "last-event-id": id }, ["pet", "order"]);
    expect([resumed.pet.request, resumed.order.request].map(({ resumeToken }) => resumeToken)).toEqual([
      "pet-2",
      "order-1",
    ]);
    resumed.order.synced("order-2");
    const synced = await resumed.reader.next();
    expect(synced.event).toBe("petstore.synced.v1");
    expect(synced.data).toEqual({ specversion: "1.0", id: synced.id, source: "/events", type: "petstore.synced.v1" });
    expect(tokensIn(synced.id ?? "")).toEqual({ pet: "pet-0", order: "order-2" });
    resumed.order.event("order-3", "CREATED", { id: 1n, etag: '"1"' });
    expect((await resumed.reader.next()).event).toBe("petstore.order.created.v1");
  });

  test.each([
    ["?petId=7", ["pet", "order", "inventory"]],
    ["?petId=7&types=category,pet", ["pet", "category"]],
    ["?types=inventory", ["inventory"]],
  ] as const)("of %s is of %j", async (query, names) => {
    await start();
    const { reader, ...watches } = await begun(`/events${query}`, {}, names);
    expect(Object.keys(tokensIn(await reader.nextId()))).toEqual(names);
    if ("pet" in watches && query.includes("petId")) expect(watches.pet.request.petId).toEqual([7n]);
  });

  test("is called for in the caller's name", async () => {
    await start();
    const { pet } = await begun("/events", { "x-request-id": "mine" });
    expect([pet.headers.get("x-request-id"), pet.headers.get("x-internal-caller")]).toEqual(["mine", "anonymous"]);
  });

  test("leaves the services when its reader goes", async () => {
    await start();
    const { reader, ...watches } = await begun();
    await reader.leave();
    await Promise.all(NAMES.map((name) => watches[name].left));
  });

  test("comes over HTTP/2, and to HEAD without events", async () => {
    await start();
    const session = connectHttp2(gateway.base);
    const stream = session.request({ ":path": "/events?types=pet" });
    const pet = await services.watched("pet");
    pet.heartbeat("pet-0");
    pet.event("pet-1", "UPDATED", rex);
    let text = "";
    for await (const chunk of stream.setEncoding("utf8")) {
      text += chunk;
      if (text.includes("petstore.pet.updated.v1")) break;
    }
    session.destroy();
    await pet.left;
    const head = fetch(`${gateway.base}/events?types=pet`, { method: "HEAD" });
    const asked = await services.watched("pet");
    asked.heartbeat("pet-0");
    expect((await head).headers.get("content-type")).toBe("text/event-stream");
    await asked.left;
  });

  test("comes to pages of other origins, who may say where they go on", async () => {
    await start({ cors: cors(["https://shop.example"]) });
    const origin = "https://shop.example";
    const asks = { "access-control-request-method": "GET", "access-control-request-headers": "last-event-id" };
    const preflight = await gateway.call("/events", { method: "OPTIONS", headers: { origin, ...asks } });
    expect(preflight.headers.get("access-control-allow-headers")).toContain("Last-Event-ID");
    const { reader } = await begun("/events?types=pet", { origin }, ["pet"]);
    expect(reader.response.headers.get("access-control-allow-origin")).toBe(origin);
  });
});

describe("what is wrong", () => {
  test.each([
    ["?types=dog", "INVALID_QUERY", "types: must be one of pet, category, order, inventory"],
    ["?types=unspecified", "INVALID_QUERY", "types: must be one of pet, category, order, inventory"],
    ["?types=", "INVALID_QUERY", "types: must not be empty"],
    ["?petId=0", "INVALID_QUERY", "petId[0]: must be greater than 0"],
    ["?snapshot=1", "INVALID_QUERY", "snapshot: must be true or false"],
    [
      "?lastEventId=x",
      "INVALID_QUERY",
      "lastEventId: must be the id of an event as it was received. Begin again without it.",
    ],
    ["?lastEventId=", "INVALID_QUERY", "lastEventId: must not be empty"],
    [`?lastEventId=${"x".repeat(6001)}`, "INVALID_QUERY", "lastEventId: must be at most 6000 characters"],
    [`?petId=${"1,".repeat(100)}1`, "INVALID_QUERY", "petId: must contain no more than 100 item(s)"],
    [`?types=${"pet,".repeat(100)}pet`, "INVALID_QUERY", "types: must contain no more than 100 item(s)"],
    ["?snapshot=true&snapshot=true", "INVALID_QUERY", "snapshot: must not be given twice"],
  ])("with %s", async (query, code, message) => {
    await start();
    expect(JSON.parse((await gateway.call(`/events${query}`)).text)).toEqual({ code, message, status: 400 });
  });

  test.each([
    ["x", "Last-Event-ID: must be the id of an event as it was received. Begin again without it."],
    ["x".repeat(6001), "Last-Event-ID: must be at most 6000 characters"],
  ])("with the id %.9s in the header, which is named", async (id, message) => {
    await start();
    const { text } = await gateway.call("/events?lastEventId=y", { headers: { "last-event-id": id } });
    expect(JSON.parse(text)).toEqual({ code: "INVALID_HEADER", message, status: 400 });
  });

  test("with an id from too long ago is 410, and all that was begun is ended", async () => {
    await start();
    services.refusals.set("order", () => rpcError("EVENTS_EXPIRED", "Begin again with a snapshot."));
    const answer = gateway.call("/events");
    const pet = await services.watched("pet");
    const { status, text } = await answer;
    expect([status, JSON.parse(text).code]).toEqual([410, "EVENTS_EXPIRED"]);
    await pet.left;
  });

  test("with a place that a service does not take is told of by the name that callers know", async () => {
    await start();
    services.refusals.set("pet", () => rpcError("VALIDATION_FAILED", "resume_token: is of another snapshot"));
    expect(JSON.parse((await gateway.call("/events?types=pet")).text)).toMatchObject({
      code: "INVALID_QUERY",
      message: "lastEventId: is of another snapshot",
    });
  });
});

describe("a service that is away", () => {
  const away = () => new ConnectError("connect ECONNREFUSED", 14);

  test("is waited for", async () => {
    await start();
    let tries = 0;
    services.refusals.set("order", () => (++tries < 4 ? away() : undefined));
    const { reader } = await begun();
    expect([reader.response.status, tries]).toEqual([200, 4]);
  });

  test("for too long is 503", async () => {
    await start();
    services.refusals.set("order", away);
    const { status, text } = await gateway.call("/events");
    expect([status, JSON.parse(text).code]).toEqual([503, "UNAVAILABLE"]);
    expect(now).toBeLessThan(6000);
  });

  test.each([
    ["stops", (watch: FakeWatch) => watch.end()],
    ["is lost", (watch: FakeWatch) => watch.fail(away())],
    ["says that it stops", (watch: FakeWatch) => watch.fail(rpcError("UNAVAILABLE", "The process stops."))],
  ])("and %s ends the stream in good order, behind what it told", async (_, go) => {
    await start();
    const { reader, pet, order } = await begun();
    order.event("order-1", "CREATED", { id: 1n, etag: '"1"' });
    const { id = "" } = await reader.next();
    go(order);
    expect(await reader.rest()).toEqual([]);
    await pet.left;
    const again = await begun("/events", { "last-event-id": id });
    expect([again.order.request.resumeToken, again.pet.request.resumeToken]).toEqual(["order-1", "pet-0"]);
  });

  test("is told from one whose reader is too slow", async () => {
    await start();
    const { reader, order } = await begun();
    order.fail(rpcError("SLOW_CONSUMER", "Read faster."));
    expect(await reader.next()).toMatchObject({ event: "error", data: { code: "SLOW_CONSUMER", status: 429 } });
    expect(await reader.rest()).toEqual([]);
  });
});

describe("a caller who is asked", () => {
  const identities = new Map<string, readonly string[]>([
    ["pets", ["pets:read"]],
    ["most", ["pets:read", "orders:read", "inventory:read"]],
    ["all", ["*"]],
  ]);
  const tokens = (text: string) => {
    const scopes = identities.get(text);
    if (!scopes) throw new InvalidCredential("unknown");
    return { id: text, scopes: new Set(scopes) };
  };
  const auth = authOf(createAuthentication({ errors, realm: "petstore", tokens }));
  const asked = (query: string, who?: string) =>
    gateway.call(`/events${query}`, { headers: who === undefined ? {} : { authorization: `Bearer ${who}` } });

  test.each([
    ["", undefined, 401, /^Bearer realm="petstore"$/],
    ["", "nobody", 401, /error="invalid_token"/],
    ["", "pets", 403, /error="insufficient_scope", scope="categories:read"/],
    ["?types=pet,order", "pets", 403, /scope="orders:read"/],
    ["?types=pet&types=%6frder", "pets", 403, /scope="orders:read"/],
    ["?types=pet&t%79pes=inventory", "pets", 403, /scope="inventory:read"/],
    ["?petId=7", "pets", 403, /scope="orders:read"/],
    ["", "most", 403, /scope="categories:read"/],
    ["?types=dog", "pets", 403, /scope="categories:read"/],
    ["?types=%", "pets", 403, /scope="categories:read"/],
    ["?types=unspecified", "all", 400, /^$/],
  ])("for %s as %s: %d", async (query, who, status, challenge) => {
    await start({ auth });
    const answer = await asked(query, who);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("www-authenticate") ?? "").toMatch(challenge);
  });

  test.each([
    ["?types=pet", "pets", ["pet"]],
    ["?petId=7", "most", ["pet", "order", "inventory"]],
    ["", "all", NAMES],
  ] as const)("may watch %s as %s", async (query, who, names) => {
    await start({ auth });
    const { reader, pet } = await begun(`/events${query}`, { authorization: `Bearer ${who}` }, names);
    expect(reader.response.status).toBe(200);
    expect(pet.headers.get("x-internal-caller")).toBe(who);
  });
});

test("a service that ends takes the others with it, whether or not the reader has noticed", async () => {
  await start();
  const transport = eventTransport({
    transports: services.transports,
    basePath: "",
    clock: () => now,
    sleep: async () => {},
  });
  const input = createAsyncIterable([create(WatchEventsRequestSchema)]);
  const answer = await transport.stream(EventService.method.watchEvents, undefined, undefined, {}, input);
  const messages = answer.message[Symbol.asyncIterator]();
  const first = messages.next();
  const watches = await Promise.all(NAMES.map(services.watched));
  for (const watch of watches) watch.heartbeat("0");
  expect((await first).value?.event).toEqual({ case: undefined });
  watches[2]?.end();
  expect((await messages.next()).done).toBe(true);
  await Promise.all(watches.map(({ left }) => left));
});

test("when the gateway stops, the stream ends in good order", async () => {
  const draining = new AbortController();
  await start({ draining: draining.signal });
  const { reader, pet } = await begun();
  draining.abort();
  expect(await reader.rest()).toEqual([]);
  await pet.left;
});

test("a reader who takes nothing keeps back the services, not the memory", async () => {
  await start();
  const { pet, order } = await begun("/events?types=pet,order", {}, ["pet", "order"]);
  const name = "x".repeat(200);
  for (let i = 0; i < 20_000; i++) pet.event(`pet-${i}`, "UPDATED", { ...rex, name });
  order.event("order-1", "CREATED", { id: 1n, etag: '"1"' });
  await expect.poll(() => order.taken, { timeout: 10_000 }).toBe(2);
  expect(pet.taken).toBeLessThan(20_000);
});
