/** GET /events: how the combined stream of the four services begins, resumes and ends. */
import { connect as connectHttp2 } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { describe, expect, test } from "vitest";
import { rpcError } from "#errors";
import { EventService, WatchEventsRequestSchema } from "#proto/petstore/event/v1/event_service_pb.ts";
import { cors } from "../cors.ts";
import { begun, NAMES, played, rex, start, tokensIn } from "./fixtures/reading.ts";
import type { FakeWatch } from "./fixtures/watches.ts";
import { eventTransport } from "./watch-events.ts";

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
    const session = connectHttp2(played.gateway.base);
    const stream = session.request({ ":path": "/events?types=pet" });
    const pet = await played.services.watched("pet");
    pet.heartbeat("pet-0");
    pet.event("pet-1", "UPDATED", rex);
    let text = "";
    for await (const chunk of stream.setEncoding("utf8")) {
      text += chunk;
      if (text.includes("petstore.pet.updated.v1")) break;
    }
    session.destroy();
    await pet.left;
    const head = fetch(`${played.gateway.base}/events?types=pet`, { method: "HEAD" });
    const asked = await played.services.watched("pet");
    asked.heartbeat("pet-0");
    expect((await head).headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    await asked.left;
  });

  test("begins now when the id is empty, wherever it is", async () => {
    await start();
    const { pet, reader } = await begun("/events?types=pet&lastEventId=", { "last-event-id": "" }, ["pet"]);
    expect(pet.request.resumeToken).toBe("");
    await reader.leave();
  });

  test("comes to pages of other origins, who may say where they go on", async () => {
    await start({ cors: cors(["https://shop.example"]) });
    const origin = "https://shop.example";
    const asks = { "access-control-request-method": "GET", "access-control-request-headers": "last-event-id" };
    const preflight = await played.gateway.call("/events", { method: "OPTIONS", headers: { origin, ...asks } });
    expect(preflight.headers.get("access-control-allow-headers")).toContain("Last-Event-ID");
    const { reader } = await begun("/events?types=pet", { origin }, ["pet"]);
    expect(reader.response.headers.get("access-control-allow-origin")).toBe(origin);
  });
});

describe("a service that is away", () => {
  const away = () => new ConnectError("connect ECONNREFUSED", 14);

  test("is waited for", async () => {
    await start();
    let tries = 0;
    played.services.refusals.set("order", () => (++tries < 4 ? away() : undefined));
    const { reader } = await begun();
    expect([reader.response.status, tries]).toEqual([200, 4]);
  });

  test("for too long is 503", async () => {
    await start();
    played.services.refusals.set("order", away);
    const { status, text } = await played.gateway.call("/events");
    expect([status, JSON.parse(text).code]).toEqual([503, "UNAVAILABLE"]);
    expect(played.now).toBeLessThan(6000);
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

test("a service that ends takes the others with it, whether or not the reader has noticed", async () => {
  await start();
  const transport = eventTransport({ transports: played.services.transports, basePath: "", ...played.deps });
  const input = createAsyncIterable([create(WatchEventsRequestSchema)]);
  const answer = await transport.stream(EventService.method.watchEvents, undefined, undefined, {}, input);
  const messages = answer.message[Symbol.asyncIterator]();
  const first = messages.next();
  const watches = await Promise.all(NAMES.map(played.services.watched));
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
