import { expect, test } from "vitest";
import { createKnownOrders } from "./known-orders.ts";
import { ORDER_ID, type Request } from "./workloads.ts";

const path = `/store/orders/${ORDER_ID}`;
const read: Request = { method: "GET", path };
const settle: Request = { method: "DELETE", path, settles: true };
const place: Request = { method: "POST", path: "/store/orders", body: "{}" };

test("reads ask for the newest order, and the oldest is settled once enough are younger", () => {
  const known = createKnownOrders("k", 2);
  const pathOf = (request: Request) => known.fill(request)?.path;
  expect(pathOf(read)).toBeUndefined();
  for (const id of [7, 8]) known.answered(201, `{"id":${id}}`);
  known.answered(409, "{}");
  expect([pathOf(read), pathOf(settle)]).toEqual(["/store/orders/8", undefined]);
  known.answered(201, '{"id":9}');
  expect([pathOf(settle), pathOf(settle), pathOf(read)]).toEqual(["/store/orders/7", undefined, "/store/orders/9"]);
});

test("each key is sent once, unless it is to be sent again", () => {
  const known = createKnownOrders("k", 0);
  const keyOf = (request: Request) => known.fill(request)?.headers["idempotency-key"];
  const keys = (["new", "again", "new"] as const).map((key) => keyOf({ ...place, key }));
  expect(keys).toEqual(["k-1", "k-1", "k-2"]);
  expect(keyOf(place)).toBeUndefined();
});
