import fc from "fast-check";
import { expect, test } from "vitest";
import type { ServiceName } from "../../processes/names.ts";
import { type Position, readId, writeId } from "./watch-events.ts";

const NAMES: readonly ServiceName[] = ["pet", "category", "order", "inventory"];
const positions = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), fc.record({ token: fc.string(), inSnapshot: fc.boolean() })), {
    selector: ([name]) => name,
  })
  .map((entries) => new Map<ServiceName, Position>(entries));

test("what was written is read again, and has nothing in it that a header or a query could not carry", () => {
  fc.assert(
    fc.property(positions, (written) => {
      const id = writeId(written);
      expect(id).toMatch(/^[\w-]*$/);
      expect(readId(id)).toEqual(written);
    }),
  );
});

test("with the longest tokens it is as long as the contract allows", () => {
  const longest = new Map(NAMES.map((name) => [name, { token: "x".repeat(2048), inSnapshot: true }]));
  expect(writeId(longest).length).toBeLessThan(12_000);
});

const id = writeId(new Map([["pet", { token: "place", inSnapshot: false }]]));
const text = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

test.each([
  ["text", "hello"],
  ["cut", id.slice(0, -1)],
  ["begun in the middle", id.slice(1)],
  ["in other characters", `${id}=`],
  ["of another form", text({ pet: "place" })],
  ["of unknown records", text([["dog", "place"]])],
  ["with a position that is none", text([["pet", 1]])],
  ["with a mark that is none", text([["pet", "place", true]])],
  [
    "with the same twice",
    text([
      ["pet", "a"],
      ["pet", "b"],
    ]),
  ],
])("VALIDATION_FAILED: %s", (_, wrong) => {
  expect(() => readId(wrong)).toThrow(/last_event_id: must be the id of an event as it was received/);
});
