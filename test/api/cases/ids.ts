/** Identifiers in paths: every int64 is one, anything else is not. */
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, ONLY_HTTP, rule } from "./case.ts";

const paths = ["/pets", "/categories", "/store/orders", "/store/inventory"];

const notIntegers: readonly (readonly [name: string, text: string])[] = [
  ["a word", "rex"],
  ["a fraction", "1.5"],
  ["a fraction that is an integer", "1.0"],
  ["an exponent", "1e3"],
  ["a leading zero", "01"],
  ["a plus", "+1"],
  ["a plus, encoded", "%2B1"],
  ["two minus signs", "--1"],
  ["a minus alone", "-"],
  ["a space", "%20"],
  ["a space behind", "1%20"],
  ["hexadecimal", "0x1"],
  ["digits of another script", "%D9%A1"],
  ["one more than int64", "9223372036854775808"],
  ["one less than int64", "-9223372036854775809"],
  ["a slash, encoded", "1%2F2"],
  ["U+0000", "1%00"],
  ["bad percent encoding", "%zz"],
  ["half a character", "%C3"],
];

const notFound = {
  pet: { http: "404 PET_NOT_FOUND", rpc: "NOT_FOUND PET_NOT_FOUND" },
  category: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  order: { http: "404 ORDER_NOT_FOUND", rpc: "NOT_FOUND ORDER_NOT_FOUND" },
  inventory: { http: "404 INVENTORY_NOT_FOUND", rpc: "NOT_FOUND INVENTORY_NOT_FOUND" },
} as const;

/** A case for every operation on one record. */
function onOne(id: bigint): Case[] {
  const name = (verb: string) => `${verb} ${id} is a legal identifier of nothing`;
  const read = (path: string, fails: Case["fails"], rpc: Case["rpc"]) =>
    rule(name(`GET ${path}`), {
      http: { method: "GET", path: `${path}/${id}` },
      rpc: rpc as never,
      fails: fails as never,
    });
  const remove = (path: string, fails: Case["fails"], rpc: Case["rpc"]) =>
    rule(name(`DELETE ${path}`), {
      http: { method: "DELETE", path: `${path}/${id}` },
      rpc: rpc as never,
      fails: fails as never,
    });
  return [
    read("/pets", notFound.pet, call(PetService.method.getPet, { petId: id })),
    read("/categories", notFound.category, call(CategoryService.method.getCategory, { categoryId: id })),
    read("/store/orders", notFound.order, call(OrderService.method.getOrder, { orderId: id })),
    read("/store/inventory", notFound.inventory, call(InventoryService.method.getInventory, { petId: id })),
    remove("/pets", notFound.pet, call(PetService.method.deletePet, { petId: id })),
    remove("/categories", notFound.category, call(CategoryService.method.deleteCategory, { categoryId: id })),
    remove("/store/orders", notFound.order, call(OrderService.method.deleteOrder, { orderId: id })),
  ];
}

export const ids: readonly Case[] = [
  ...notIntegers.flatMap(([name, text]) =>
    paths.map((path) =>
      rule(`GET ${path}: ${name}`, {
        http: { method: "GET", path: `${path}/${text}` },
        oneEndpoint: ONLY_HTTP.path,
        fails: { http: "400 INVALID_ID", says: path === "/pets" ? "petId" : "Id" },
      }),
    ),
  ),
  ...["PUT", "PATCH", "DELETE"].map((method) =>
    rule(`${method} of no identifier`, {
      http: { method, path: "/pets/rex", ...(method === "DELETE" ? {} : { body: {} }) },
      oneEndpoint: ONLY_HTTP.path,
      fails: { http: "400 INVALID_ID", says: "petId" },
    }),
  ),
  rule("GET /pets/-0 is the identifier 0", {
    http: { method: "GET", path: "/pets/-0" },
    oneEndpoint: ONLY_HTTP.path,
    fails: { http: "404 PET_NOT_FOUND" },
  }),
  rule("an encoded digit is the digit", {
    http: { method: "GET", path: "/pets/%30" },
    oneEndpoint: ONLY_HTTP.path,
    fails: { http: "404 PET_NOT_FOUND" },
  }),
  ...[0n, -1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)].flatMap(onOne),
];
