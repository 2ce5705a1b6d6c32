/** Entity tags and preconditions. */
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, ONLY_HTTP, type RpcCall, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

interface Subject {
  readonly path: string;
  readonly id: bigint;
  readonly etag: string;
}

/** A kind of write that takes a condition. */
interface Write {
  readonly name: string;
  readonly given: (shop: Shop) => Promise<Subject>;
  readonly method: string;
  readonly body?: object;
  readonly rpc: (id: bigint, condition: Condition) => RpcCall;
}

/** The condition as fields of a request. */
interface Condition {
  readonly etag?: string;
  readonly ifNoneMatch?: string;
}

const pet = async (shop: Shop) => {
  const { id, etag } = await shop.pet();
  return { path: `/pets/${id}`, id, etag };
};
const category = async (shop: Shop) => {
  const { id, etag } = await shop.category();
  return { path: `/categories/${id}`, id, etag };
};
const order = async (shop: Shop) => {
  const { id = 0n, etag } = await shop.order();
  return { path: `/store/orders/${id}`, id, etag };
};
const stock = async (shop: Shop) => {
  const { id } = await shop.pet();
  return { path: `/store/inventory/${id}`, id, etag: (await shop.stockOf(id)).etag };
};

const { updatePet, deletePet } = PetService.method;
const { updateCategory, deleteCategory } = CategoryService.method;
const { updateOrder, deleteOrder } = OrderService.method;
const { updateInventory } = InventoryService.method;

const patches: readonly Write[] = [
  {
    name: "PATCH of a pet",
    given: pet,
    method: "PATCH",
    body: { name: "Max" },
    rpc: (petId, condition) =>
      call(updatePet, { petId, pet: { name: "Max" }, updateMask: { paths: ["name"] }, ...condition }),
  },
  {
    name: "PUT of a category",
    given: category,
    method: "PUT",
    body: { name: "wolf" },
    rpc: (categoryId, condition) => call(updateCategory, { categoryId, category: { name: "wolf" }, ...condition }),
  },
  {
    name: "PATCH of an order",
    given: order,
    method: "PATCH",
    body: { complete: true },
    rpc: (orderId, condition) =>
      call(updateOrder, { orderId, order: { complete: true }, updateMask: { paths: ["complete"] }, ...condition }),
  },
  {
    name: "PUT of inventory",
    given: stock,
    method: "PUT",
    body: { quantity: 7 },
    rpc: (petId, condition) => call(updateInventory, { petId, inventory: { quantity: 7 }, ...condition }),
  },
];
const deletions: readonly Write[] = [
  {
    name: "DELETE of a pet",
    given: pet,
    method: "DELETE",
    rpc: (petId, condition) => call(deletePet, { petId, ...condition }),
  },
  {
    name: "DELETE of a category",
    given: category,
    method: "DELETE",
    rpc: (categoryId, condition) => call(deleteCategory, { categoryId, ...condition }),
  },
  {
    name: "DELETE of an order",
    given: order,
    method: "DELETE",
    rpc: (orderId, condition) => call(deleteOrder, { orderId, ...condition }),
  },
];

const DOG = { name: "dog" };
const HEADERS = { etag: "if-match", ifNoneMatch: "if-none-match" } as const;

/** The write with one condition, in its HTTP and its RPC form. */
const conditional = (
  write: Write,
  says: string,
  condition: (etag: string) => string,
  member: keyof Condition = "etag",
) => ({
  name: `${write.name}: ${says}`,
  given: write.given,
  http: ({ path, etag }: Subject) => ({
    method: write.method,
    path,
    headers: { [HEADERS[member]]: condition(etag) },
    ...(write.body ? { body: write.body } : {}),
  }),
  rpc: ({ id, etag }: Subject) => write.rpc(id, { [member]: condition(etag) }),
});
const unless = (write: Write, says: string, held: (etag: string) => string) =>
  conditional(write, `If-None-Match, ${says}`, held, "ifNoneMatch");
const refuses = ({ name, ...body }: ReturnType<typeof conditional>, says = "") =>
  rule(name, { ...body, fails: { http: "412 ETAG_MISMATCH", rpc: "ABORTED ETAG_MISMATCH", says } });
const isNoTag = ({ name, ...body }: ReturnType<typeof conditional>) =>
  rule(name, {
    ...body,
    fails: { http: "400 INVALID_HEADER", rpc: "INVALID_ARGUMENT VALIDATION_FAILED" },
  });
const accepts = ({ name, ...body }: ReturnType<typeof conditional>, deletes: boolean) =>
  rule(name, {
    ...body,
    answers: () =>
      deletes
        ? { http: { status: 204, headers: { etag: null } }, rpc: { message: {} } }
        : {
            http: { status: 200, headers: { etag: '"2"' }, body: expect.any(Object) },
            rpc: { message: expect.any(Object) },
          },
  });

const matching: readonly (readonly [string, (etag: string) => string])[] = [
  ["the current tag", (etag) => etag],
  ["anything", () => "*"],
  ["a list with the current tag", (etag) => `"no", ${etag}`],
  ["a list with empty elements", (etag) => `, ,${etag} ,`],
];
const WEAK = "A proxy that compresses answers makes tags weak";
const AGAIN = "Read it and try again.";
const stale: readonly (readonly [string, (etag: string) => string, string])[] = [
  ["a stale tag", () => '"0"', AGAIN],
  ["a weak tag never matches", (etag) => `W/${etag}`, WEAK],
  ["weak tags never match", (etag) => `W/"0", W/${etag}`, WEAK],
  ["a list of other tags", () => '"0", "no", W/"1"', WEAK],
  ["an empty tag", () => '""', AGAIN],
];
const noTags: readonly (readonly [string, (etag: string) => string])[] = [
  ["no quotes", (etag) => etag.replaceAll('"', "")],
  ["half a tag", () => '"1'],
  ["two tags without a comma", () => '"1" "2"'],
  ["anything in a list", () => '*, "1"'],
  ["a lower case w/", (etag) => `w/${etag}`],
];

/** Values of If-None-Match that match an existing record: comparison is weak. */
const held: readonly (readonly [string, (etag: string) => string])[] = [
  ["anything", () => "*"],
  ["the current tag", (etag) => etag],
  ["the current tag as a weak one", (etag) => `W/${etag}`],
  ["a list with the current tag", (etag) => `"no", ,W/"no", ${etag}`],
];
const notHeld: readonly (readonly [string, (etag: string) => string])[] = [
  ["a stale tag", () => '"0"'],
  ["a list of other tags", () => '"0", W/"no"'],
];

const reads = [
  { name: "a pet", given: pet },
  { name: "a category", given: category },
  { name: "an order", given: order },
  { name: "inventory", given: stock },
];
const cached = (name: string, given: (shop: Shop) => Promise<Subject>, held: (etag: string) => string) =>
  rule(`GET of ${name}: 304 without a body, with the ETag`, {
    given,
    http: ({ path, etag }) => ({ method: "GET", path, headers: { "if-none-match": held(etag) } }),
    oneEndpoint: ONLY_HTTP.headers,
    answers: ({ etag }) => ({ http: { status: 304, headers: { etag } } }),
  });
const fresh = (name: string, held: string) =>
  rule(`GET: ${name}`, {
    given: category,
    http: ({ path }) => ({ method: "GET", path, headers: { "if-none-match": held } }),
    oneEndpoint: ONLY_HTTP.headers,
    answers: ({ id, etag }) => ({ http: { status: 200, headers: { etag }, body: { id: Number(id), name: "dog" } } }),
  });

export const conditions: readonly Case[] = [
  ...[...patches, ...deletions].flatMap((write) => [
    ...matching.map(([says, condition]) => accepts(conditional(write, says, condition), !write.body)),
    ...stale.map(([name, condition, says]) => refuses(conditional(write, name, condition), says)),
  ]),
  ...patches.flatMap((write) => noTags.map(([says, condition]) => isNoTag(conditional(write, says, condition)))),
  ...deletions.map((write) => isNoTag(conditional(write, "no quotes", () => "1"))),
  ...[...patches, ...deletions].flatMap((write) => [
    ...held.map(([says, condition]) => refuses(unless(write, says, condition))),
    ...notHeld.map(([says, condition]) => accepts(unless(write, says, condition), !write.body)),
    ...noTags.map(([says, condition]) => isNoTag(unless(write, says, condition))),
  ]),
  rule("both conditions have to hold", {
    given: category,
    http: ({ path, etag }) => ({ method: "DELETE", path, headers: { "if-match": etag, "if-none-match": "*" } }),
    rpc: ({ id, etag }) => call(deleteCategory, { categoryId: id, etag, ifNoneMatch: "*" }),
    fails: { http: "412 ETAG_MISMATCH", rpc: "ABORTED ETAG_MISMATCH" },
  }),
  rule("a missing record is missing, whatever it must not be", {
    http: { method: "DELETE", path: "/categories/0", headers: { "if-none-match": "*" } },
    rpc: call(deleteCategory, { categoryId: 0n, ifNoneMatch: "*" }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  }),
  rule("a create is about no record that there is, so that conditions don't count", {
    http: { method: "POST", path: "/categories", headers: { "if-none-match": "*", "if-match": "1" }, body: DOG },
    oneEndpoint: ONLY_HTTP.headers,
    answers: () => ({ http: { status: 201, body: { id: expect.any(Number), ...DOG } } }),
  }),
  rule("a list has no tag to judge", {
    http: { method: "GET", path: "/categories?id=0", headers: { "if-none-match": "*", "if-match": '"1"' } },
    oneEndpoint: ONLY_HTTP.headers,
    answers: () => ({ http: { status: 200, body: [] } }),
  }),
  rule("the record is looked for before its revision", {
    http: { method: "DELETE", path: "/pets/0", headers: { "if-match": '"1"' } },
    rpc: call(deletePet, { petId: 0n, etag: '"1"' }),
    fails: { http: "404 PET_NOT_FOUND", rpc: "NOT_FOUND PET_NOT_FOUND" },
  }),
  rule("the revision is judged before what else is stored", {
    given: async (shop) => shop.order({ complete: true }),
    http: ({ id }) => ({ method: "DELETE", path: `/store/orders/${id}`, headers: { "if-match": '"9"' } }),
    rpc: ({ id = 0n }) => call(deleteOrder, { orderId: id, etag: '"9"' }),
    fails: { http: "412 ETAG_MISMATCH", rpc: "ABORTED ETAG_MISMATCH" },
  }),
  rule("the tag does not change when the representation does not", {
    given: category,
    http: ({ path }) => ({ method: "PUT", path, body: { name: "dog" } }),
    rpc: ({ id }) => call(updateCategory, { categoryId: id, category: { name: "dog" } }),
    answers: ({ id, etag }) => ({
      http: { status: 200, headers: { etag }, body: { id: Number(id), name: "dog" } },
      rpc: { message: { category: { id: `${id}`, name: "dog", etag } } },
    }),
  }),
  rule("the tag of an entry changes with what orders do to it", {
    given: async (shop) => {
      const before = await stock(shop);
      await shop.order({ petId: before.id });
      return before;
    },
    http: ({ path, etag }) => ({ method: "PUT", path, headers: { "if-match": etag }, body: { quantity: 7 } }),
    rpc: ({ id, etag }) => call(updateInventory, { petId: id, inventory: { quantity: 7 }, etag }),
    fails: { http: "412 ETAG_MISMATCH", rpc: "ABORTED ETAG_MISMATCH" },
  }),
  ...reads.map(({ name, given }) => cached(name, given, (etag) => etag)),
  cached("a weak tag: comparison is weak", category, (etag) => `W/${etag}`),
  cached("a list", category, (etag) => `"no",W/"no" , ${etag}`),
  cached("anything", category, () => "*"),
  fresh("another tag", '"0"'),
  fresh("other tags", '"0", W/"no"'),
  ...["1", '"1', '*, "1"', ""].map((held) =>
    rule(`GET: If-None-Match ${held || "without a value"} is no entity tag`, {
      given: category,
      http: ({ path }) => ({ method: "GET", path, headers: { "if-none-match": held } }),
      oneEndpoint: ONLY_HTTP.headers,
      fails: { http: "400 INVALID_HEADER", says: "If-None-Match" },
    }),
  ),
  ...reads.flatMap(({ name, given }) => [
    ...["GET", "HEAD"].map((method) =>
      rule(`${method} of ${name}: 412 when If-Match names another tag`, {
        given,
        http: ({ path }) => ({ method, path, headers: { "if-match": '"0"' } }),
        oneEndpoint: ONLY_HTTP.headers,
        ...(method === "GET"
          ? { fails: { http: "412 ETAG_MISMATCH" } }
          : { answers: () => ({ http: { status: 412 } }) }),
      }),
    ),
    rule(`GET of ${name}: 200 when If-Match names its tag`, {
      given,
      http: ({ path, etag }) => ({ method: "GET", path, headers: { "if-match": `"0", ${etag}` } }),
      oneEndpoint: ONLY_HTTP.headers,
      answers: ({ etag }) => ({ http: { status: 200, headers: { etag }, body: expect.any(Object) } }),
    }),
  ]),
  rule("GET: If-Match compares strongly", {
    given: category,
    http: ({ path, etag }) => ({ method: "GET", path, headers: { "if-match": `W/${etag}` } }),
    oneEndpoint: ONLY_HTTP.headers,
    fails: { http: "412 ETAG_MISMATCH", says: WEAK },
  }),
  rule("GET: If-Match is judged before If-None-Match", {
    given: category,
    http: ({ path, etag }) => ({ method: "GET", path, headers: { "if-match": '"0"', "if-none-match": etag } }),
    oneEndpoint: ONLY_HTTP.headers,
    fails: { http: "412 ETAG_MISMATCH" },
  }),
  rule("GET: If-None-Match is judged where If-Match holds", {
    given: category,
    http: ({ path, etag }) => ({ method: "GET", path, headers: { "if-match": "*", "if-none-match": etag } }),
    oneEndpoint: ONLY_HTTP.headers,
    answers: ({ etag }) => ({ http: { status: 304, headers: { etag } } }),
  }),
  ...["1", '"1', '*, "1"', ""].map((named) =>
    rule(`GET: If-Match ${named || "without a value"} is no entity tag`, {
      given: category,
      http: ({ path }) => ({ method: "GET", path, headers: { "if-match": named } }),
      oneEndpoint: ONLY_HTTP.headers,
      fails: { http: "400 INVALID_HEADER", says: "If-Match" },
    }),
  ),
  rule("GET: 404 whatever the record must be", {
    http: { method: "GET", path: "/categories/0", headers: { "if-match": "*" } },
    oneEndpoint: ONLY_HTTP.headers,
    fails: { http: "404 CATEGORY_NOT_FOUND" },
  }),
  rule("GET: 404 whatever the caller holds", {
    http: { method: "GET", path: "/categories/0", headers: { "if-none-match": "*" } },
    oneEndpoint: ONLY_HTTP.headers,
    fails: { http: "404 CATEGORY_NOT_FOUND" },
  }),
  rule("GET: headers are judged before the path", {
    http: { method: "GET", path: "/categories/x", headers: { "if-none-match": "1" } },
    oneEndpoint: ONLY_HTTP.headers,
    fails: { http: "400 INVALID_HEADER", says: "If-None-Match" },
  }),
];
