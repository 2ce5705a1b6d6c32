/** Allowed values: limits, numbers and strings. */
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, rule } from "./case.ts";

const { createCategory } = CategoryService.method;
const { createPet } = PetService.method;
const { createOrder } = OrderService.method;

const BOTH = { http: "400 VALIDATION_FAILED", rpc: "INVALID_ARGUMENT VALIDATION_FAILED" } as const;
const MESSAGES = "protobuf messages can't hold it";

const name = (title: string, value: string) =>
  rule(`name: ${title}`, {
    http: { method: "POST", path: "/categories", body: { name: value } },
    rpc: call(createCategory, { category: { name: value } }),
    answers: () => ({
      http: { status: 201, body: { id: expect.any(Number), name: value } },
      rpc: { message: { category: { id: expect.any(String), name: value, etag: '"1"' } } },
    }),
  });
const badName = (title: string, value: string) =>
  rule(`name: ${title}`, {
    http: { method: "POST", path: "/categories", body: { name: value } },
    rpc: call(createCategory, { category: { name: value } }),
    fails: { ...BOTH, says: "name" },
  });
const badText = (title: string, description: string) =>
  rule(`description: ${title}`, {
    http: { method: "POST", path: "/categories", body: { name: "dog", description } },
    rpc: call(createCategory, { category: { name: "dog", description } }),
    fails: { ...BOTH, says: "description" },
  });

/** A member whose value has the wrong type. */
const wrong = (path: string, says: string, text: string, among: string) =>
  rule(`${says}: ${text} is not one`, {
    http: { method: "POST", path, body: `{${among}"${says}":${text}}` },
    oneEndpoint: MESSAGES,
    fails: { http: "400 VALIDATION_FAILED", says },
  });
const noInteger = [
  '"7"',
  "true",
  "null",
  "[3]",
  "{}",
  "1.5",
  '""',
  "1e-1",
  "9223372036854775808",
  "-9223372036854775809",
];
const noString = ["7", "true", "null", '["a"]', "{}"];
const noBoolean = ["1", "0", '"true"', "null", "[]", "{}"];
const noStatus = ['"AVAILABLE"', '"PET_STATUS_SOLD"', '"lost"', '""', "1", "null", '["sold"]', "true"];

/** Numbers are compared by their mathematical value. */
const quantity = (text: string, value: number) =>
  rule(`quantity: ${text} is ${value}`, {
    http: { method: "POST", path: "/store/orders", body: `{"quantity":${text}}` },
    rpc: call(createOrder, { order: { quantity: value } }),
    answers: () => ({
      http: { status: 201, body: { id: expect.any(Number), quantity: value, complete: false } },
      rpc: { message: { order: { id: expect.any(String), quantity: value, complete: false, etag: '"1"' } } },
    }),
  });
const badQuantity = (text: string, value?: number) =>
  rule(`quantity: ${text} is out of range`, {
    http: { method: "POST", path: "/store/orders", body: `{"quantity":${text}}` },
    ...(value === undefined
      ? { oneEndpoint: MESSAGES, fails: { http: BOTH.http, says: "quantity" } }
      : { rpc: call(createOrder, { order: { quantity: value } }), fails: { ...BOTH, says: "quantity" } }),
  });
const badReference = (member: "petId" | "categoryId", value: bigint) =>
  rule(`${member}: ${value} is no reference`, {
    http:
      member === "petId"
        ? { method: "POST", path: "/store/orders", body: `{"petId":${value}}` }
        : { method: "POST", path: "/pets", body: `{"name":"Rex","categoryId":${value}}` },
    rpc:
      member === "petId"
        ? call(createOrder, { order: { petId: value } })
        : call(createPet, { pet: { name: "Rex", categoryId: value } }),
    fails: { ...BOTH, says: member === "petId" ? "pet" : "categor" },
  });
/** A number that its type can't hold is told the range that is taken there. */
const beyond = (member: "petId" | "quantity" | "categoryId", text: string, last: string) =>
  rule(`${member}: ${text} is told the range of the rule`, {
    http:
      member === "categoryId"
        ? { method: "POST", path: "/pets", body: `{"name":"Rex","categoryId":${text}}` }
        : { method: "POST", path: "/store/orders", body: `{"${member}":${text}}` },
    oneEndpoint: MESSAGES,
    fails: { http: BOTH.http, says: `${member}: must be from 1 to ${last}` },
  });
const exactly = (text: string) =>
  rule(`categoryId: ${text} is exact`, {
    http: { method: "POST", path: "/pets", body: `{"name":"Rex","categoryId":${text}}` },
    rpc: call(createPet, { pet: { name: "Rex", categoryId: BigInt(text) } }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  });

const WHITE_SPACE =
  "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";

export const values: readonly Case[] = [
  name("200 characters", "d".repeat(200)),
  name("characters are code points", "\u{1f415}".repeat(200)),
  name("strings are stored as sent", " e\u0301 \u00e9 \u200b<b>&'\"\\ \u2028"),
  name("a zero-width space is not white space", "\u200b"),
  name("one that programs stumble over", "__proto__"),
  badName("empty", ""),
  badName("201 characters", "d".repeat(201)),
  badName("201 code points", "\u{1f415}".repeat(201)),
  badName("blank", "  "),
  badName("blank, by every White_Space there is", WHITE_SPACE),
  badName("U+0000", "a\u0000b"),
  rule("name: required", {
    http: { method: "POST", path: "/categories", body: {} },
    rpc: call(createCategory, { category: {} }),
    fails: { ...BOTH, says: "name" },
  }),
  rule("categoryId: required", {
    http: { method: "POST", path: "/pets", body: { name: "Rex" } },
    rpc: call(createPet, { pet: { name: "Rex" } }),
    fails: { ...BOTH, says: "categor" },
  }),
  rule("every member at fault is named", {
    http: { method: "POST", path: "/pets", body: { name: " ", categoryId: 0 } },
    rpc: call(createPet, { pet: { name: " ", categoryId: 0n } }),
    fails: { ...BOTH, says: ";" },
  }),
  rule("a record is required on RPC", {
    rpc: call(createPet, {}),
    oneEndpoint: "over HTTP it is the body",
    fails: { rpc: BOTH.rpc, says: "pet" },
  }),
  rule("description: 2,000 characters", {
    http: { method: "POST", path: "/categories", body: { name: "dog", description: "\u{1f415}".repeat(2000) } },
    rpc: call(createCategory, { category: { name: "dog", description: "\u{1f415}".repeat(2000) } }),
    answers: () => ({ http: { status: 201, body: expect.any(Object) }, rpc: { message: expect.any(Object) } }),
  }),
  badText("2,001 characters", "d".repeat(2001)),
  badText("U+0000", "\u0000"),
  ...noString.map((text) => wrong("/categories", "name", text, "")),
  ...noString.map((text) => wrong("/categories", "description", text, '"name":"dog",')),
  ...noInteger.map((text) => wrong("/pets", "categoryId", text, '"name":"Rex",')),
  ...noStatus.map((text) => wrong("/pets", "status", text, '"name":"Rex","categoryId":1,')),
  ...noInteger.map((text) => wrong("/store/orders", "petId", text, "")),
  ...noInteger.map((text) => wrong("/store/orders", "quantity", text, "")),
  ...noBoolean.map((text) => wrong("/store/orders", "complete", text, "")),
  quantity("1", 1),
  quantity("1.0", 1),
  quantity("1e3", 1000),
  quantity("1E+3", 1000),
  quantity("20e-1", 2),
  quantity("2147483647", 2147483647),
  quantity("0.2147483647e10", 2147483647),
  badQuantity("0", 0),
  badQuantity("-0", 0),
  badQuantity("-1", -1),
  badQuantity("2147483648"),
  badQuantity("1e400"),
  badQuantity("-1e400"),
  badQuantity("1e-400"),
  badQuantity(`1${"0".repeat(400)}`),
  beyond("quantity", "3000000000", "2147483647"),
  beyond("quantity", "-3000000000", "2147483647"),
  beyond("petId", "9223372036854775808", "9223372036854775807"),
  beyond("categoryId", "-1e19", "9223372036854775807"),
  badReference("petId", 0n),
  badReference("petId", -1n),
  badReference("categoryId", 0n),
  badReference("categoryId", -(2n ** 63n)),
  exactly("9007199254740993"),
  exactly("9223372036854775807"),
  rule("status: 0 is an error on RPC", {
    rpc: call(createPet, { pet: { name: "Rex", categoryId: 1n, status: 0 } }),
    oneEndpoint: "HTTP has names for statuses",
    fails: { rpc: BOTH.rpc, says: "status" },
  }),
  rule("status: a number that is none", {
    rpc: call(createPet, { pet: { name: "Rex", categoryId: 1n, status: 4 as 1 } }),
    oneEndpoint: "HTTP has names for statuses",
    fails: { rpc: BOTH.rpc, says: "status" },
  }),
];
