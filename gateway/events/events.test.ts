/** GET /events: the form of an event. */
import { jsonText } from "connect-transcoder";
import { describe, expect, test } from "vitest";
import { rpcError } from "#errors";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { checkAgainstDocument } from "../../test/api/openapi-validator.ts";
import { testLimits } from "../fixtures/gateway.ts";
import { petstoreDocument } from "../openapi.ts";
import { begun, NAMES, played, rex, start, tokensIn } from "./fixtures/reading.ts";

const limits = { ...testLimits, rpcBytes: 1024 };
const document = JSON.parse(
  jsonText(petstoreDocument({ basePath: "", limits, deprecation: {}, rate: undefined, auth: undefined })),
);

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
    const shown = await played.gateway.call("/api/pets/7");
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

  test("has numbers for what only a newer service knows, and the stream goes on", async () => {
    await start();
    const { reader, pet } = await begun();
    pet.event("1", 9, { ...rex, status: 7 });
    pet.event("2", "UPDATED", rex);
    const { event, data } = await reader.next();
    expect(event).toBe("petstore.pet.9.v1");
    expect(data).toMatchObject({ type: "petstore.pet.9.v1", data: { id: 7, status: 7 } });
    expect((await reader.next()).event).toBe("petstore.pet.updated.v1");
    expect(played.unknown).toEqual(["petstore.common.v1.EventType 9"]);
    expect(played.gateway.log.join()).toContain('"enum":"petstore.common.v1.PetStatus","value":7');
  });

  test("is a line of JSON where that is asked for", async () => {
    await start();
    const answer = played.gateway.call("/events?types=pet", { headers: { accept: "application/x-ndjson" } });
    const pet = await played.services.watched("pet");
    pet.heartbeat("pet-0");
    pet.event("pet-1", "UPDATED", rex);
    pet.end();
    const lines = (await answer).text.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
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
    const answer = played.gateway.call("/events?snapshot=true", { headers: { accept } });
    const records = {
      pet: rex,
      category: { id: 2n, name: "dogs", etag: '"1"' },
      order: { id: 3n, etag: '"1"' },
      inventory: { petId: 7n, quantity: 5, status: PetStatus.AVAILABLE, etag: '"9"' },
    };
    const watches = await Promise.all(
      NAMES.map(async (name) => ({ name, watch: await played.services.watched(name) })),
    );
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
