/** A petstore whose records were stored before names could be searched. */
import { type Doc, put, schema } from "@petstore/store/port";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MARKS } from "../../services/records/folded-names.ts";
import { openShop, type Shop } from "../api/cases/shop.ts";
import { eventually } from "../harness/eventually.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { openStoreOf } from "../harness/stores.ts";

/** More than a search makes ready by itself. */
const COUNT = 230;

let petstore: Petstore;
let shop: Shop;
beforeAll(async () => {
  petstore = await startPetstore();
  shop = openShop(petstore);
});
afterAll(() => petstore?.stop());

/** Makes a service's records those of a version without search. */
async function forget(service: "pet" | "category", collection: string): Promise<void> {
  await petstore.kill(service, "SIGTERM");
  const store = await openStoreOf(petstore, service);
  const records = await store.collection(schema<Doc & { _id: number }>()(collection, {}));
  for (const { _id } of await records.list({ limit: 1_000, order: "asc" }))
    await records.update(_id, (doc) => put({ ...doc, _id, foldedName: undefined }, undefined));
  const marks = await store.collection(MARKS);
  for (const { _id } of await marks.list({ limit: 9, order: "asc" })) await marks.remove(_id, () => true);
  await store.close();
  await petstore.start(service);
}

test("after the upgrade every one is found, with its ETag of before, and no search leaves one out", {
  timeout: 120_000,
}, async () => {
  const { id: categoryId } = await shop.category({ name: "Hunde" });
  for (let i = 1; i < COUNT; i++) await shop.category({ name: "hunde" });
  await Promise.all(Array.from({ length: COUNT }, () => shop.pet({ name: "Rex", categoryId })));
  const ask = async (path: string) => {
    const response = await fetch(petstore.http + path);
    return { status: response.status, body: await response.json(), link: response.headers.get("link") };
  };
  for (const [service, collection, path] of [
    ["pet", "pets", "/pets?name=REX&limit=100"],
    ["category", "categories", "/categories?name=HUNDE&limit=100"],
  ] as const) {
    const before = await fetch(`${petstore.http}/${collection}/1`);
    await forget(service, collection);
    const all = async () => {
      const found: number[] = [];
      for (let next: string | undefined = path; next; ) {
        const { status, body, link } = await ask(next);
        if (status === 503) return undefined;
        expect(status).toBe(200);
        found.push(...body.map(({ id }: { id: number }) => id));
        next = /<([^>]+)>; rel="next"/.exec(link ?? "")?.[1];
      }
      return new Set(found).size;
    };
    const counts: (number | undefined)[] = [];
    await eventually(async () => {
      counts.push(await all());
      return counts.at(-1);
    }, COUNT);
    expect(counts.filter((count) => count !== undefined && count !== COUNT)).toEqual([]);
    const after = await fetch(`${petstore.http}/${collection}/1`);
    expect(after.headers.get("etag")).toBe(before.headers.get("etag"));
  }
});
