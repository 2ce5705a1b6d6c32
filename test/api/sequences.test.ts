/** Rules of the API that take more than one call to show. */

import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reasonOf } from "#errors";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryInternalService } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { checkEveryAnswer, sendHttp, sendRpc } from "./cases/endpoints.ts";
import { openShop, type Shop } from "./cases/shop.ts";

let petstore: Petstore;
let shop: Shop;
beforeAll(async () => {
  petstore = await startPetstore();
  shop = openShop(petstore);
});
afterAll(() => petstore?.stop());

const get = (path: string, headers: Record<string, string> = {}) =>
  sendHttp(petstore.http, { method: "GET", path, headers });
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  sendHttp(petstore.http, { method: "POST", path, headers, body });

describe("pages", () => {
  /** Follows the links of a list to its end and gives the identifiers of each page. */
  async function follow(first: string, id: "id" | "petId"): Promise<number[][]> {
    const pages: number[][] = [];
    for (let path: string | undefined = first; path !== undefined; ) {
      const { status, headers, text } = await get(path);
      expect(status).toBe(200);
      pages.push((JSON.parse(text) as Record<string, number>[]).map((record) => record[id] ?? 0));
      path = /<([^>]+)>; rel="next"/.exec(headers.link ?? "")?.[1];
    }
    return pages;
  }
  const inTwos = (ids: readonly bigint[]) => {
    const newest = ids.map(Number).toReversed();
    return [newest.slice(0, 2), newest.slice(2, 4), newest.slice(4)];
  };
  const five = async (make: () => Promise<bigint | undefined>) => {
    const ids: bigint[] = [];
    for (let i = 0; i < 5; i++) ids.push((await make()) ?? 0n);
    // Of several processes each has ids at hand, so theirs need not be in the order of creation.
    return ids.sort((a, b) => Number(a - b));
  };

  test("the links lead through all categories, pets, orders and inventory entries", async () => {
    const categories = await five(async () => (await shop.category()).id);
    expect(await follow(`/categories?limit=2&id=${categories}`, "id")).toEqual(inTwos(categories));
    const categoryId = categories[0] ?? 0n;
    const pets = await five(async () => (await shop.pet({ categoryId })).id);
    expect(await follow(`/pets?limit=2&categoryId=${categoryId}`, "id")).toEqual(inTwos(pets));
    expect(await follow(`/store/inventory?limit=2&petId=${pets}`, "petId")).toEqual(inTwos(pets));
    const { id: petId } = await shop.stocked(9);
    const orders = await five(async () => (await shop.order({ petId })).id);
    expect(await follow(`/store/orders?limit=2&petId=${petId}`, "id")).toEqual(inTwos(orders));
  });

  test("records that come and go meanwhile are neither shown twice nor hide others", async () => {
    const { id: categoryId } = await shop.category();
    const pets = await five(async () => (await shop.pet({ categoryId })).id);
    const first = await get(`/pets?limit=2&categoryId=${categoryId}`);
    await shop.pets.deletePet({ petId: pets[3] ?? 0n }); // the place where the page ended
    const { id: late } = await shop.pet({ categoryId });
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.link ?? "")?.[1] ?? "";
    const others = (await follow(next, "id")).flat().filter((id) => id !== Number(late));
    expect(others).toEqual(pets.slice(0, 3).map(Number).toReversed());
  });
});

describe("problems", () => {
  const accept = "application/problem+json";
  test("have the record's members beside their own", async () => {
    const { status, headers, text } = await get("/categories/0", { accept });
    expect([status, headers["content-type"]?.split(";")[0]]).toEqual([404, accept]);
    const message = expect.stringContaining("0");
    expect(JSON.parse(text)).toEqual({
      type: "about:blank",
      title: "Not Found",
      detail: message,
      status: 404,
      code: "CATEGORY_NOT_FOUND",
      message,
    });
    const { detail, message: same } = JSON.parse(text);
    expect(detail).toBe(same);
  });
  test("are sent when nothing is wanted more, and not for a wildcard", async () => {
    const named = await get("/categories/0", { accept: "application/json;q=0.5, application/problem+json" });
    expect(named.headers["content-type"]).toMatch(/^application\/problem\+json/);
    const less = "application/json, application/problem+json;q=0.5";
    for (const other of [less, "*/*", "application/*", "application/json"]) {
      const { headers, text } = await get("/categories/0", { accept: other });
      expect(headers["content-type"]).toMatch(/^application\/json/);
      expect(Object.keys(JSON.parse(text))).toEqual(["code", "message", "status"]);
    }
  });
  test("errors are sent as JSON when nothing else fits", async () => {
    const { status, headers, text } = await get("/nowhere", { accept: "image/png" });
    expect([status, headers["content-type"]?.split(";")[0]]).toEqual([404, "application/json"]);
    expect(JSON.parse(text).code).toBe("ROUTE_NOT_FOUND");
  });
});

describe("keys, at once", () => {
  test("the same key and body make one record, and all answers but one are replays", async () => {
    const key = shop.unique();
    const body = { name: "dog", description: key };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post("/categories", body, { "idempotency-key": key })),
    );
    expect(new Set(answers.map(({ status, text, headers }) => `${status} ${text} ${headers.location}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(201);
    expect(answers.filter(({ headers }) => headers["idempotent-replayed"] === "true")).toHaveLength(7);
    const { categories } = await shop.categories.listCategories({ limit: 8 });
    expect(categories.filter(({ description }) => description === key)).toHaveLength(1);
  });

  test("orders, too: their units are taken once", async () => {
    const { id } = await shop.stocked(9);
    const body = { petId: Number(id), quantity: 2 };
    const key = shop.unique();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post("/store/orders", body, { "idempotency-key": key })),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers["idempotent-replayed"] === "true")).toHaveLength(7);
    expect((await shop.stockOf(id)).quantity).toBe(7);
    expect((await shop.orders.listOrders({ petId: id })).orders).toHaveLength(1);
  });

  test("one body of several wins a key, the others are told so", async () => {
    const key = shop.unique();
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => post("/categories", { name: `${key} ${i}` }, { "idempotency-key": key })),
    );
    const codes = answers.map(({ status, text }) => (status === 201 ? "201" : `${status} ${JSON.parse(text).code}`));
    expect(codes.filter((code) => code === "201")).toHaveLength(1);
    for (const code of codes) expect(["201", "422 IDEMPOTENCY_KEY_REUSED"]).toContain(code);
    const { categories } = await shop.categories.listCategories({ limit: 10 });
    expect(categories.filter(({ name }) => name.startsWith(key))).toHaveLength(1);
  });

  test("a key that was refused answers so again, also when the stock is back", async () => {
    const { id } = await shop.stocked(1);
    const body = { petId: Number(id), quantity: 2 };
    const order = (key: string) => post("/store/orders", body, { "idempotency-key": key });
    const key = shop.unique();
    const first = await order(key);
    expect([first.status, JSON.parse(first.text).code]).toEqual([409, "INSUFFICIENT_STOCK"]);
    expect(first.headers["idempotent-replayed"]).toBeUndefined();
    await shop.inventory.updateInventory({ petId: id, inventory: { quantity: 9 } });
    const again = await order(key);
    expect([again.status, again.text]).toEqual([409, first.text]);
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect((await order(shop.unique())).status).toBe(201);
    expect((await shop.stockOf(id)).quantity).toBe(7);
  });

  test("two bodies under one key: one wins at once, its callers are all answered alike", async () => {
    const { id } = await shop.stocked(9);
    const key = shop.unique();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        post("/store/orders", { petId: Number(id), quantity: 1 + (i % 2) }, { "idempotency-key": key }),
      ),
    );
    const won = answers.filter(({ status }) => status === 201);
    expect(won).toHaveLength(10);
    expect(new Set(won.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter(({ status }) => status === 422)).toHaveLength(10);
    expect((await shop.orders.listOrders({ petId: id })).orders).toHaveLength(1);
  });

  test("a key works across the endpoints", async () => {
    const key = shop.unique();
    const first = await post("/categories", { name: "dog" }, { "idempotency-key": key });
    const { category } = await petstore
      .connect(CategoryService)
      .createCategory({ category: { name: "dog" }, requestId: key });
    expect(Number(category?.id)).toBe(JSON.parse(first.text).id);
  });
});

describe("identifiers", () => {
  test("grow, are below 2^53, and are never used again", async () => {
    const { id: gone } = await shop.category();
    await shop.categories.deleteCategory({ categoryId: gone });
    const { id: next } = await shop.category();
    expect(next).toBeGreaterThan(gone);
    expect(next).toBeLessThan(2n ** 53n);
  });
});

describe("stock at once", () => {
  test("no more is sold than there is", async () => {
    const { id } = await shop.stocked(5);
    const answers = await Promise.all(Array.from({ length: 12 }, () => post("/store/orders", { petId: Number(id) })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    for (const { status, text } of answers.filter(({ status }) => status !== 201))
      expect([status, JSON.parse(text).code]).toEqual([409, "PET_NOT_AVAILABLE"]);
    expect((await shop.stockOf(id)).quantity).toBe(0);
  });

  test("of those who change the same revision, one does", async () => {
    const { id, etag } = await shop.category();
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        sendHttp(petstore.http, {
          method: "PATCH",
          path: `/categories/${id}`,
          headers: { "if-match": etag },
          body: { name: `wolf ${i}` },
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412, 412]);
  });
});

describe("pet status", () => {
  test("the answer of a write is no newer than any later read through the gateway", async () => {
    const { id } = await shop.pet();
    await post("/store/orders", { petId: Number(id) });
    // Writing anything that touches the status shows the one that follows, and so does every later read.
    const written = await sendHttp(petstore.http, {
      method: "PATCH",
      path: `/pets/${id}`,
      body: { status: "pending" },
    });
    expect(JSON.parse(written.text).status).toBe("pending");
    expect(JSON.parse((await get(`/pets/${id}`)).text).status).toBe("pending");
    expect(JSON.parse((await get(`/pets?id=${id}`)).text)[0].status).toBe("pending");
  });
});

describe("documentation", () => {
  test("the reference page has the headers of every answer", async () => {
    const page = await get("/docs");
    checkEveryAnswer(page);
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
  });
});

describe("internal services", () => {
  const open = { method: InventoryInternalService.method.open, request: { petId: 1n, listing: 1 } };
  test("are not to be called from outside, at their own port either", async () => {
    const seen = await sendRpc(petstore.transport(InventoryInternalService), open);
    if (!(seen instanceof ConnectError)) throw new Error("it was called");
    expect([seen.code, reasonOf(seen)?.reason]).toEqual([Code.PermissionDenied, "PERMISSION_DENIED"]);
    const { items } = await shop.inventory.batchGetInventory({ petId: [1n] });
    const { pets } = await shop.pets.batchGetPets({ petId: [1n] });
    expect(items).toHaveLength(pets.length);
  });
});
