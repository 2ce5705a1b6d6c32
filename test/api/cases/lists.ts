/** What the four lists have in common: order, pages, filters by identifier. */
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, ONLY_HTTP, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

interface Kind {
  readonly name: string;
  readonly path: string;
  readonly list: DescMethodUnary;
  /** The member of the RPC's answer that has the records. */
  readonly field: string;
  /** The name of the identifier: of the records' member, and of the list's parameter. */
  readonly id: "id" | "petId";
  /** Creates three records. Returns their identifiers, the lowest first, and a filter that selects only them. */
  readonly three: (shop: Shop) => Promise<Three>;
}
interface Three {
  readonly ids: readonly bigint[];
  readonly query: string;
  readonly request: object;
}

/** Of several processes each has ids at hand, so theirs need not be in the order of creation. */
const threeOf = async (make: () => Promise<bigint | undefined>): Promise<bigint[]> => {
  const ids = [await make(), await make(), await make()];
  return ids.map((id) => id ?? 0n).sort((a, b) => Number(a - b));
};

const kinds: readonly Kind[] = [
  {
    name: "categories",
    path: "/categories",
    list: CategoryService.method.listCategories,
    field: "categories",
    id: "id",
    async three(shop) {
      const ids = await threeOf(async () => (await shop.category()).id);
      return { ids, query: `id=${ids}`, request: { id: ids } };
    },
  },
  {
    name: "pets",
    path: "/pets",
    list: PetService.method.listPets,
    field: "pets",
    id: "id",
    async three(shop) {
      const { id: categoryId } = await shop.category();
      const ids = await threeOf(async () => (await shop.pet({ categoryId })).id);
      return { ids, query: `categoryId=${categoryId}`, request: { categoryId } };
    },
  },
  {
    name: "orders",
    path: "/store/orders",
    list: OrderService.method.listOrders,
    field: "orders",
    id: "id",
    async three(shop) {
      const { id: petId } = await shop.stocked(9);
      const ids = await threeOf(async () => (await shop.order({ petId })).id);
      return { ids, query: `petId=${petId}`, request: { petId } };
    },
  },
  {
    name: "inventory",
    path: "/store/inventory",
    list: InventoryService.method.listInventory,
    field: "items",
    id: "petId",
    async three(shop) {
      const ids = await threeOf(async () => (await shop.pet()).id);
      return { ids, query: `petId=${ids}`, request: { petId: ids } };
    },
  },
];

/** What a request has in addition to the filter, at both endpoints. */
type Extra = (three: Three & { token: string }) => { query: string; request: object };

function rulesOf({ name, path, list, field, id, three }: Kind): Case[] {
  /** A case whose page has these of the three records; `more` if another page follows. */
  const page = (title: string, extra: Extra, shown: readonly number[], more = false) =>
    rule(`${name}: ${title}`, {
      given,
      http: (it) => ({ method: "GET", path: `${path}?${it.query}${extra(it).query}` }),
      rpc: (it) => ({ method: list, request: { ...it.request, ...extra(it).request } }),
      answers: ({ ids }) => ({
        http: {
          status: 200,
          headers: { link: more ? NEXT : null, etag: null },
          body: shown.map((i) => expect.objectContaining({ [id]: Number(ids[i]) })),
        },
        rpc: {
          message: {
            [field]: shown.map((i) => expect.objectContaining({ [id]: String(ids[i]) })),
            nextPageToken: more ? expect.stringMatching(/./) : "",
          },
        },
      }),
    });
  /** The three records, and the token that the first page of one record returns. */
  const given = async (shop: Shop) => {
    const made = await three(shop);
    const lists = { categories: shop.categories.listCategories, pets: shop.pets.listPets };
    const others = { orders: shop.orders.listOrders, items: shop.inventory.listInventory };
    const ask = { ...lists, ...others }[field] as (request: object) => Promise<{ nextPageToken: string }>;
    return { ...made, token: (await ask({ ...made.request, limit: 1 })).nextPageToken };
  };
  const badToken = (title: string, extra: Extra) =>
    rule(`${name}: ${title}`, {
      given,
      http: (it) => ({ method: "GET", path: `${path}?${it.query}${extra(it).query}` }),
      rpc: (it) => ({ method: list, request: { ...it.request, ...extra(it).request } }),
      fails: { http: "400 INVALID_PAGE_TOKEN", rpc: "INVALID_ARGUMENT INVALID_PAGE_TOKEN", says: "oken" },
    });
  const bad = (title: string, query: string, request?: object) =>
    rule(`${name}: ${title}`, {
      http: { method: "GET", path: `${path}?${query}` },
      ...(request ? { rpc: { method: list, request } } : { oneEndpoint: ONLY_HTTP.path }),
      fails: { http: "400 INVALID_QUERY", ...(request ? { rpc: "INVALID_ARGUMENT VALIDATION_FAILED" } : {}) },
    });
  const none: Extra = () => ({ query: "", request: {} });
  const with_ =
    (query: string, request: object): Extra =>
    () => ({ query, request });
  const manyIds = (count: number) => Array.from({ length: count }, (_, i) => BigInt(9007199254740991 - i));

  return [
    page("newest first", none, [2, 1, 0]),
    page("newest first when asked for", with_(`&orderBy=-${id}`, { orderBy: `-${id}` }), [2, 1, 0]),
    page("oldest first", with_(`&orderBy=${id}`, { orderBy: id }), [0, 1, 2]),
    page("a first page", with_("&limit=2", { limit: 2 }), [2, 1], true),
    page("next is sent only if there is another record", with_("&limit=3", { limit: 3 }), [2, 1, 0]),
    page("an empty pageToken is the first page", with_("&pageToken=", { pageToken: "" }), [2, 1, 0]),
    page(
      "a page in the middle",
      ({ token }) => ({ query: `&limit=1&pageToken=${token}`, request: { limit: 1, pageToken: token } }),
      [1],
      true,
    ),
    page(
      "a token is not bound to limit",
      ({ token }) => ({ query: `&limit=5&pageToken=${token}`, request: { limit: 5, pageToken: token } }),
      [1, 0],
    ),
    page("unknown parameters are ignored", with_("&colour=black", {}), [2, 1, 0]),
    badToken("no token", with_("&pageToken=nonsense", { pageToken: "nonsense" })),
    badToken("a token with another order", ({ token }) => ({
      query: `&orderBy=${id}&pageToken=${token}`,
      request: { orderBy: id, pageToken: token },
    })),
    rule(`${name}: a token with another filter`, {
      given,
      http: ({ ids: [, b, c], token }) => ({ method: "GET", path: `${path}?${id}=${b},${c}&pageToken=${token}` }),
      rpc: ({ ids, token }) => ({ method: list, request: { [id]: ids.slice(1), pageToken: token } }),
      fails: { http: "400 INVALID_PAGE_TOKEN", rpc: "INVALID_ARGUMENT INVALID_PAGE_TOKEN", says: "filter" },
    }),
    bad("limit 0", "limit=0", { limit: 0 }),
    bad("limit below 0", "limit=-1", { limit: -1 }),
    bad("a limit that is no integer", "limit=1.5"),
    bad("a limit with a leading zero", "limit=07"),
    bad("an empty limit", "limit="),
    bad("limit twice", "limit=1&limit=1"),
    bad("an order that there is not", "orderBy=name", { orderBy: "name" }),
    bad("an empty order", "orderBy=", { orderBy: "" }),
    bad("orderBy twice", `orderBy=${id}&orderBy=${id}`),
    bad("an identifier that is no integer", `${id}=x`),
    bad("an identifier beyond int64", `${id}=9223372036854775808`),
    bad("an identifier with a plus", `${id}=%2B1`),
    bad("an empty identifier", `${id}=`),
    bad("an empty identifier among others", `${id}=1,,2`),
    bad("more than 100 values", `${id}=${manyIds(101)}`, { [id]: manyIds(101) }),
    bad("bad percent encoding", `${id}=%zz`),
    rule(`${name}: 100 values that match nothing, 0 and the ends of int64 among them`, {
      http: { method: "GET", path: `${path}?${id}=${manyIds(97)}&${id}=0&${id}=${ENDS[0]}&${id}=${ENDS[1]}` },
      rpc: { method: list, request: { [id]: [...manyIds(97), 0n, ...ENDS] } },
      answers: () => ({
        http: { status: 200, headers: { link: null }, body: [] },
        rpc: { message: { [field]: [], nextPageToken: "" } },
      }),
    }),
    rule(`${name}: values may be repeated or separated by commas, and one asked for twice comes once`, {
      given: three,
      http: ({ ids: [a, b, c] }) => ({ method: "GET", path: `${path}?${id}=${a},${b}&${id}=${c}&${id}=${a}` }),
      rpc: ({ ids }) => ({ method: list, request: { [id]: [...ids, ids[0]] } }),
      answers: ({ ids }) => ({
        http: { status: 200, body: ids.toReversed().map((one) => expect.objectContaining({ [id]: Number(one) })) },
        rpc: {
          message: {
            [field]: ids.toReversed().map((one) => expect.objectContaining({ [id]: String(one) })),
            nextPageToken: "",
          },
        },
      }),
    }),
    ...["colour", "page_token"].map((parameter) =>
      rule(`${name}: unknown parameters are errors under strict handling: ${parameter}`, {
        http: { method: "GET", path: `${path}?${parameter}=black`, headers: { prefer: "handling=strict" } },
        oneEndpoint: ONLY_HTTP.path,
        fails: { http: "400 UNKNOWN_FIELD", says: parameter },
      }),
    ),
  ];
}

const NEXT = expect.stringMatching(/^<\/[\w/]+\?.*pageToken=[^>]+>; rel="next"$/);
const ENDS = [-(2n ** 63n), 2n ** 63n - 1n] as const;

export const lists = kinds.flatMap(rulesOf);
