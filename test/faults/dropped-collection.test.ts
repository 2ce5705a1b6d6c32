/** A collection is dropped under the running petstore, as by `mongorestore --drop` or by tests that clean up behind them. */
import { Code, ConnectError } from "@connectrpc/connect";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../harness/mongod.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

const timeout = 300_000;
let set: ReplicaSet;
let petstore: Petstore;
beforeAll(async () => {
  if (mongodMissing) return;
  set = await startReplicaSet();
  petstore = await startPetstore({ replicas: 2, mongodbUri: set.uri });
}, timeout);
afterAll(async () => {
  await petstore?.stop();
  await set?.stop();
}, timeout);

const call = (path: string, init?: RequestInit) => fetch(`${petstore.http}${path}`, init);
const json = async (path: string) => {
  const answer = await call(path);
  return [answer.status, await answer.json()];
};
async function makeCategory(name: string): Promise<number> {
  const headers = { "content-type": "application/json" };
  const answer = await call("/categories", { method: "POST", headers, body: JSON.stringify({ name }) });
  expect(answer.status).toBe(201);
  return (await answer.json()).id;
}

/** GET /events of all four services: `text` grows until `over`. */
async function follow() {
  const answer = await call("/events");
  expect(answer.status).toBe(200);
  const events = { text: "", over: Promise.resolve() };
  const read = async () => {
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) events.text += chunk;
  };
  events.over = read();
  await expect.poll(() => events.text).toMatch(/^id: /m);
  return events;
}
const lastId = (text: string): string => [...text.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1] ?? "";

async function watchFrom(resumeToken: string): Promise<unknown> {
  try {
    for await (const _ of petstore.client(CategoryService).watchCategories({ resumeToken }));
  } catch (error) {
    return error;
  }
}

test.skipIf(mongodMissing)(
  "who watches is told to begin again, also with an id from before, and all goes on",
  async () => {
    const { value: first } = await petstore.client(CategoryService).watchCategories({})[Symbol.asyncIterator]().next();
    const readers = [await follow(), await follow()];
    const lost = await makeCategory("lost");
    for (const reader of readers) await expect.poll(() => reader.text).toContain("petstore.category.created.v1");

    await using client = new MongoClient(set.uri);
    await client.db("petstore_category").collection("categories").drop();

    for (const reader of readers) {
      await reader.over;
      expect(reader.text).toContain('"code":"EVENTS_EXPIRED"');
    }
    const kept = await makeCategory("kept");
    expect(kept).toBeGreaterThan(lost);
    // Each of both gateways.
    for (const { text } of [...readers, ...readers]) {
      const answer = await call("/events", { headers: { "last-event-id": lastId(text) } });
      expect([answer.status, (await answer.json()).code]).toEqual([410, "EVENTS_EXPIRED"]);
    }
    for (let replica = 0; replica < 2; replica++) {
      const refused = await watchFrom(first?.resumeToken ?? "");
      expect(ConnectError.from(refused).code).toBe(Code.OutOfRange);
    }
    const listed = [200, [{ id: kept, name: "kept" }]];
    for (let replica = 0; replica < 2; replica++) expect(await json("/categories")).toEqual(listed);
    const again = await follow();
    const more = await makeCategory("more");
    await expect.poll(() => again.text).toMatch(new RegExp(`petstore.category.created.v1[\\s\\S]*"id":${more}\\b`));
    expect(petstore.logs("category")).toMatch(/all who watch categories have to begin anew: .*dropped or renamed/);
  },
  timeout,
);
