import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import * as s from "@petstore/store/document-schema";
import { expect, test } from "vitest";
import { NewCategorySchema } from "#proto/petstore/category/v1/category_pb.ts";
import { OrderSchema } from "#proto/petstore/order/v1/order_pb.ts";
import { members } from "./members.ts";
import { idOr } from "./record.ts";

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
