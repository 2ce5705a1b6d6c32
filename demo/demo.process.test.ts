/** `npm run demo` beside a real petstore: fills it once, keeps it busy, and stops when it is told to. */
import { join } from "node:path";
import { createPetstore } from "@petstore/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Run, run } from "../packages/runtime/fixtures/run.ts";
import { type Petstore, startPetstore } from "../test/harness/petstore.ts";
import { planShop } from "./shop.ts";

const PETS = 12;
let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
}, 120_000);
afterAll(() => petstore?.stop());

const demo = (...args: string[]): Run =>
  run([join(import.meta.dirname, "main.ts"), "--seed", "7", "--pets", `${PETS}`, "--rate", "50", ...args], {
    PETSTORE_URL: petstore.http,
  });
const toItsEnd = async (...args: string[]) => {
  await using it = demo(...args);
  return { code: await it.ended, output: it.output() };
};
const client = () => createPetstore({ baseUrl: petstore.http });

/** What of a shop is the same for the same seed. */
const pets = async () => Array.fromAsync(client().pets.list({ orderBy: "id" }), ({ id, name }) => ({ id, name }));
const orders = async () => Array.fromAsync(client().orders.list({ orderBy: "id" }));

test("fills the store with the shop of the seed", async () => {
  const { code, output } = await toItsEnd("--changes", "0");
  expect(output).toMatch(new RegExp(`^The shop has ${PETS} pets at ${petstore.http}\\.$`, "m"));
  expect(code).toBe(0);
  const planned = planShop(7, PETS);
  expect((await pets()).map(({ name }) => name)).toEqual(planned.map(({ name }) => name));
  const placed = planned.flatMap((pet) => pet.orders);
  expect((await orders()).map(({ quantity, complete }) => ({ quantity, complete }))).toEqual(placed);
  const first = planned.findIndex(({ listing, stock }) => listing === "available" && stock > 3);
  const ordered = planned[first]?.orders.reduce((sum, { quantity }) => sum + quantity, 0) ?? 0;
  const { quantity } = await client().inventory.get(first + 1);
  expect(quantity).toBe((planned[first]?.stock ?? 0) - ordered);
});

test("keeps it busy for as many changes as asked, and fills nothing twice", async () => {
  const [before, open] = [await pets(), await orders()];
  const { code, output } = await toItsEnd("--changes", "25");
  const [, ...counts] = /^(\d+) ordered, (\d+) delivered, (\d+) cancelled, (\d+) refilled\./m.exec(output) ?? [];
  const [ordered = 0, delivered = 0, cancelled = 0, refilled = 0] = counts.map(Number);
  expect(ordered + delivered + cancelled + refilled).toBe(25);
  expect(code).toBe(0);
  expect(await pets()).toEqual(before);
  const after = await orders();
  expect(after.length - open.length).toBe(ordered - cancelled);
  const complete = (all: typeof after) => all.filter((order) => order.complete).length;
  expect(complete(after) - complete(open)).toBe(delivered);
});

test("adds what is missing", async () => {
  const gone = await client().pets.create({ name: "Tom", categoryId: 1 });
  const { output } = await toItsEnd("--changes", "0", "--pets", `${PETS + 2}`);
  expect(output).toContain(`The shop has ${PETS + 2} pets at ${petstore.http}.`);
  expect(await pets()).toHaveLength(PETS + 3);
  await client().pets.delete(gone.id);
});

test("ends in good order on Ctrl-C", async () => {
  await using it = demo();
  await it.printed(/Ctrl-C ends it/);
  it.process.kill("SIGINT");
  expect(await it.ended).toBe(0);
  expect(it.output()).toMatch(/^\d+ ordered, .*run it again to go on\.$/m);
});

test("waits for a petstore that does not answer for a while", async () => {
  await using it = demo("--changes", "30");
  await it.printed(/Ctrl-C ends it/);
  await petstore.kill("gateway");
  await petstore.start("gateway");
  expect(await it.ended).toBe(0);
  expect(it.output()).toMatch(/^\d+ ordered/m);
});

test("finds a petstore that PORT_BASE has moved", async () => {
  const { port } = new URL(petstore.http);
  await using it = run([join(import.meta.dirname, "main.ts"), "--pets", `${PETS}`, "--changes", "0"], {
    PORT_BASE: port,
  });
  expect(await it.ended).toBe(0);
  expect(it.output()).toContain(`pets at http://127.0.0.1:${port}.`);
});

test("says what to do when there is no petstore", async () => {
  const { code, output } = await toItsEnd("--url", "http://127.0.0.1:1");
  expect(output).toMatch(/^No petstore answers at http:\/\/127\.0\.0\.1:1 .*\nStart one with npm start/);
  expect(code).toBe(1);
});

test.each([
  [["--pets", "1000000"], "--pets can be"],
  [["--rate", "often"], "--rate must be a whole number above 0, not often."],
  [["--url", "here"], "--url must be an address such as http://127.0.0.1:8080, not here."],
])("refuses %j", async (args, words) => {
  const { code, output } = await toItsEnd(...args);
  expect(output).toContain(words);
  expect(code).toBe(1);
});
