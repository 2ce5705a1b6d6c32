import { expect, test } from "vitest";
import { readTold, wordsOf } from "./events.ts";

const line = {
  id: "place",
  event: "petstore.pet.updated.v1",
  data: {
    specversion: "1.0",
    id: "7",
    source: "/pets",
    type: "petstore.pet.updated.v1",
    subject: "1",
    time: "2026-11-22T10:00:00.5Z",
    etag: '"4"',
    data: { id: 1, name: "Rex", categoryId: 2, status: "pending", member: "of a newer petstore" },
  },
};

test("an event is a record as the client package has it", () => {
  const { id, event } = readTold(line);
  expect(id).toBe("place");
  expect(event).toMatchObject({ id: "7", kind: "pet", what: "updated", time: new Date("2026-11-22T10:00:00.5Z") });
  expect(event?.record).toMatchObject({ id: 1, name: "Rex", categoryId: 2, status: "pending", etag: '"4"' });
  expect(event && wordsOf(event.kind, event.record)).toBe("Pet 1 Rex: pending");
});

test("a status that only a newer service knows is the text of its number, and unknown in words", () => {
  const { event } = readTold({ ...line, data: { ...line.data, data: { ...line.data.data, status: 7 } } });
  expect(event?.record).toMatchObject({ status: "7" });
  expect(event && wordsOf(event.kind, event.record)).toBe("Pet 1 Rex: unknown");
});

test("each kind has its words", () => {
  const say = (kind: string, data: object) => {
    const { event } = readTold({ ...line, event: `petstore.${kind}.created.v1`, data: { ...line.data, data } });
    return event && wordsOf(event.kind, event.record);
  };
  expect(say("order", { id: 5, petId: 1, quantity: 1, complete: false })).toBe("Order 5 for pet 1: open");
  expect(say("order", { id: 6, complete: true })).toBe("Order 6: complete");
  expect(say("inventory", { petId: 1, quantity: 0, status: "sold" })).toBe("Stock of pet 1: 0, sold");
  expect(say("category", { id: 2, name: "dogs" })).toBe("Category 2 dogs");
});

test("heartbeats, the end of a snapshot and kinds that are not known are places and nothing else", () => {
  expect(readTold({})).toEqual({});
  expect(readTold({ id: "a" })).toEqual({ id: "a" });
  expect(readTold({ id: "b", event: "petstore.synced.v1", data: {} })).toEqual({ id: "b" });
  expect(readTold({ id: "c", event: "petstore.vet.created.v1", data: {} })).toEqual({ id: "c" });
  const error = { code: "SLOW_CONSUMER", message: "Read faster.", status: 429 };
  expect(readTold({ event: "error", data: error })).toEqual({ error });
});
