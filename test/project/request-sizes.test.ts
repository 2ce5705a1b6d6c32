/** How large requests can be by the contract: every field has a bound, and from the bounds comes the limit of bytes. */
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  ScalarType,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { MAX_MESSAGE_BYTES } from "@petstore/rpc/server/message-limit";
import { maxRequestBytes, SLACK_BYTES } from "@petstore/rpc/server/request-limit";
import { limitOf, MAX_PATHS } from "connect-transcoder/validation/field-limits";
import { describe, expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { OrderInternalService } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { LinkService } from "../../packages/rpc/gen/link/internal/v1/link_service_pb.ts";
import { contractServices } from "./contract-services.ts";

/** What callers, or the petstore's own processes, can call; a link carries calls that are judged one by one. */
const methods = contractServices.flatMap((service): readonly DescMethod[] => service.methods);

/** Every field of a message and of those within it. */
function fieldsWithin(desc: DescMessage, seen = new Set<DescMessage>()): readonly DescField[] {
  if (seen.has(desc)) return [];
  seen.add(desc);
  return desc.fields.flatMap((field) => [field, ...(field.message ? fieldsWithin(field.message, seen) : [])]);
}

const isText = (type: ScalarType | undefined): boolean => type === ScalarType.STRING || type === ScalarType.BYTES;

/** Whether nothing bounds what a field can hold. A mask's paths are compared with the names of fields and go no further. */
function isUnbounded(field: DescField): boolean {
  const { size, items, keys } = limitOf(field);
  if (field.fieldKind === "list" || field.fieldKind === "map") {
    if (!Number.isFinite(size)) return true;
    if (field.fieldKind === "map" && isText(field.mapKey) && !Number.isFinite(keys?.size)) return true;
    return isText(field.scalar) && field.parent !== FieldMaskSchema && !Number.isFinite(items?.size);
  }
  return isText(field.scalar) && !Number.isFinite(size);
}

describe("the contract", () => {
  test.each(methods.map((method) => [`${method}`, method] as const))("bounds every field of %s", (_, method) => {
    expect(fieldsWithin(method.input).filter(isUnbounded).map(String)).toEqual([]);
  });

  test("what is not bounded is found", () => {
    const fields = fieldsWithin(LinkService.method.link.input).filter(isUnbounded).map(String);
    expect(fields).toContain("field link.internal.v1.LinkRequest.calls");
    expect(fields).toContain("field link.internal.v1.Call.message");
  });
});

describe("maxRequestBytes", () => {
  test("is far below the limit of all messages where fields are small, and never above it", () => {
    for (const method of methods) {
      expect(maxRequestBytes(method)).toBeGreaterThan(SLACK_BYTES);
      expect(maxRequestBytes(method), `${method}`).toBeLessThan(MAX_MESSAGE_BYTES / 4);
    }
    expect(maxRequestBytes(LinkService.method.link)).toBe(MAX_MESSAGE_BYTES);
  });

  // As some writers of JSON do with all that is not ASCII.
  const escaped = (json: string) => json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
  const FULL = "\u{1f415}";
  const MOST = 2n ** 63n - 1n;
  const mask = { paths: Array(MAX_PATHS).fill("category_id") };
  const tags = '"'.repeat(4096);
  test.each([
    [
      PetService.method.listPets,
      {
        limit: -(2 ** 31),
        pageToken: FULL.repeat(512),
        id: Array(100).fill(-MOST),
        categoryId: -MOST,
        status: Array(100).fill(PetStatus.AVAILABLE),
        orderBy: "-id",
      },
    ],
    [
      PetService.method.updatePet,
      { petId: -MOST, pet: { name: FULL.repeat(200), categoryId: MOST, status: 1 }, updateMask: mask, etag: tags },
    ],
    [
      CategoryService.method.createCategory,
      { category: { name: FULL.repeat(200), description: FULL.repeat(2000) }, requestId: "k".repeat(255) },
    ],
    [
      OrderService.method.updateOrder,
      {
        orderId: -MOST,
        order: {
          id: MOST,
          petId: MOST,
          quantity: -(2 ** 31),
          shipDate: { seconds: 1n, nanos: 999_999_999 },
          complete: false,
          etag: FULL.repeat(64),
        },
        updateMask: mask,
        etag: tags,
      },
    ],
    [
      OrderInternalService.method.resolveReservations,
      { reservations: Array(1000).fill({ orderId: -MOST, petId: -MOST, tag: "t".repeat(8) }) },
    ],
  ] as const)(
    "%s: what its fields can hold fits in every encoding, beside what a newer contract adds",
    (method, init) => {
      const message = create(method.input as DescMessage, init as never);
      expect(toBinary(method.input as DescMessage, message).length).toBeLessThan(maxRequestBytes(method) - SLACK_BYTES);
      const json = escaped(toJsonString(method.input as DescMessage, message));
      expect(json.length).toBeLessThanOrEqual(maxRequestBytes(method) - SLACK_BYTES);
    },
  );
});
