import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import * as s from "@petstore/store/document-schema";
import { describe, expect, test } from "vitest";
import { NewCategorySchema } from "#proto/petstore/category/v1/category_pb.ts";
import { OrderSchema } from "#proto/petstore/order/v1/order_pb.ts";
import { PetSchema } from "#proto/petstore/pet/v1/pet_pb.ts";
import { checkPreconditions, type Preconditions } from "./errors.ts";
import { idOr, members, storedId, succeed, toEtag } from "./record.ts";

const judge = (condition: Preconditions, version = 3) => {
  try {
    checkPreconditions(condition, version);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ reason: "ETAG_MISMATCH" });
    return false;
  }
};

describe("If-Match", () => {
  const holds = (etag: string | undefined) => judge({ etag });
  test.each([undefined, "*", " * ", '"3"', '"1", "3"', 'W/"9", "3"', ',"3"'])("%s holds", (condition) => {
    expect(holds(condition)).toBe(true);
  });
  test.each(['"2"', '"33"', 'W/"3"', '"1","2"', '"a,"', '"W/"'])("%s does not", (condition) => {
    expect(holds(condition)).toBe(false);
  });
  test.each(['W/"3"', 'W/"2", W/"3"', '"2",W/"3"'])(
    "%s is told that a weak tag never matches, and why it is one",
    (etag) => {
      expect(() => checkPreconditions({ etag }, 3)).toThrow(
        'The record is at revision "3" now. A weak tag (W/) never matches here. A proxy that compresses answers makes tags weak: send it without the W/.',
      );
    },
  );
  test("what is only quoted like a weak tag is stale", () => {
    expect(() => checkPreconditions({ etag: '"W/"' }, 3)).toThrow("Read it and try again.");
  });
});

describe("If-None-Match", () => {
  const holds = (ifNoneMatch: string | undefined) => judge({ ifNoneMatch });
  test.each([undefined, '"2"', '"33"', 'W/"33"', '"1","2"', '"a,"', '"W/"', '""'])("%s holds", (condition) => {
    expect(holds(condition)).toBe(true);
  });
  test.each(["*", " * ", '"3"', '"1", "3"', 'W/"3"', 'W/"9", W/"3"', ',"3"'])("%s does not", (condition) => {
    expect(holds(condition)).toBe(false);
  });
  test("is judged after If-Match, and both have to hold", () => {
    expect(judge({ etag: '"3"', ifNoneMatch: '"2"' })).toBe(true);
    expect(judge({ etag: '"3"', ifNoneMatch: "*" })).toBe(false);
    expect(() => checkPreconditions({ etag: '"2"', ifNoneMatch: "*" }, 3)).toThrow("Read it and try again");
  });
});

test("ids that were never assigned name nothing", () => {
  expect([1n, 2n ** 53n - 1n].map(storedId)).toEqual([1, Number.MAX_SAFE_INTEGER]);
  expect([0n, -1n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)].map(storedId)).toEqual(Array(5).fill(undefined));
});

test("a version moves if and only if the view does", () => {
  const doc = { version: 4, name: "Rex", secret: 1 };
  const view = ({ name, version }: typeof doc) => create(PetSchema, { name, etag: toEtag(version) });
  expect(succeed(doc, { name: "Rex" }, view)).toEqual(doc);
  expect(succeed(doc, { secret: 2 }, view)).toEqual({ ...doc, secret: 2 });
  expect(succeed(doc, { name: "Max" }, view)).toEqual({ ...doc, name: "Max", version: 5 });
});

const moment = s.object({ seconds: s.int });
const time = {
  fromMessage: ({ seconds }: { seconds: bigint }) => ({ seconds: Number(seconds) }),
  toMessage: ({ seconds }: { seconds: number }) => create(TimestampSchema, { seconds: BigInt(seconds) }),
};
const rest = { quantity: s.int.optional, complete: s.boolean.optional };
const order = members(
  OrderSchema,
  { ...rest, petId: s.int.optional, shipDate: moment.optional },
  { petId: idOr(0), shipDate: time },
);
const said = create(OrderSchema, { petId: 7n, complete: false, shipDate: { seconds: 5n } });
const maskOf = (...paths: string[]) => create(FieldMaskSchema, { paths });

test("a new record is made from all members, in the order in which they are declared", () => {
  const params = order.fromMessage(said);
  expect(JSON.stringify(params)).toBe('{"complete":false,"petId":7,"shipDate":{"seconds":5}}');
  expect(Object.keys(params)).toEqual(Object.keys(order.fields));
  expect(Object.values(order.fromMessage(undefined))).toEqual([undefined, undefined, undefined, undefined]);
  expect(order.toMessage(OrderSchema, params, { etag: "e" })).toEqual(
    create(OrderSchema, { complete: false, petId: 7n, shipDate: { seconds: 5n, nanos: 0 }, etag: "e" }),
  );
});

test("what names no record is stored as the number that stands for it", () => {
  expect(order.fromMessage(create(OrderSchema, { petId: 2n ** 63n - 1n })).petId).toBe(0);
});

test("an update changes what is given, or what its mask names, and removes what is clearable and absent", () => {
  expect(order.changeOf(said, undefined)).toStrictEqual({ complete: false, petId: 7, shipDate: { seconds: 5 } });
  expect(order.changeOf(create(OrderSchema), undefined)).toStrictEqual({ shipDate: undefined });
  expect(order.changeOf(said, maskOf("pet_id"))).toStrictEqual({ petId: 7 });
  expect(order.changeOf(create(OrderSchema), maskOf("ship_date", "quantity"))).toStrictEqual({ shipDate: undefined });
  expect(order.changeOf(said, maskOf())).toStrictEqual({});
});

test("the compiler refuses a list of other members", () => {
  const name = s.string;
  const description = s.string.optional;
  members(NewCategorySchema, { name, description }, {});
  // @ts-expect-error: a member is forgotten
  members(NewCategorySchema, { name }, {});
  // @ts-expect-error: a member is stored as another type
  members(NewCategorySchema, { name, description: s.int }, {});
  const all = { ...rest, petId: s.int.optional, shipDate: moment.optional };
  // @ts-expect-error: a conversion is forgotten
  members(OrderSchema, all, { petId: idOr(0) });
});
