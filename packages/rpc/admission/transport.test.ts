import { type Code, Code as Codes, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { errors, reasonOf } from "../../../errors.ts";
import { OrderService } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import { type Admission, createAdmission } from "./admission.ts";
import { CALM, MEMORY, START_LIMIT } from "./limit.ts";
import { withAdmission } from "./transport.ts";

const { getOrder, listOrders } = OrderService.method;

function start(unary: () => Promise<unknown>) {
  const ended: boolean[] = [];
  const counting = createAdmission({ clock: () => 0 });
  const admission: Admission = {
    ...counting,
    end(call, isMeasured) {
      ended.push(isMeasured);
      counting.end(call, isMeasured);
    },
  };
  let made = 0;
  const next = {
    unary: () => {
      made++;
      return unary();
    },
  } as unknown as Transport;
  const client = createClient(OrderService, withAdmission(next, admission, errors));
  return { admission, ended, client, made: () => made };
}

const failing = (code: Code) => () => Promise.reject(new ConnectError("x", code));
const reason = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error) => reasonOf(ConnectError.from(error))?.reason ?? Codes[ConnectError.from(error).code],
  );

test.each([
  [Codes.NotFound, true],
  [Codes.FailedPrecondition, true],
  [Codes.DeadlineExceeded, true],
  [Codes.Unavailable, false],
  [Codes.Canceled, false],
])("a call that ends with code %i is over, and its delay counts: %s", async (code, isMeasured) => {
  const { admission, ended, client } = start(failing(code));
  expect(await reason(client.getOrder({ orderId: 1n }))).toBe(Codes[code]);
  expect([admission.underWay(), ended]).toEqual([0, [isMeasured]]);
});

describe("a call is not made", () => {
  test("where there is no room", async () => {
    const { admission, client, made } = start(failing(Codes.NotFound));
    for (let i = 0; i < 2 * START_LIMIT; i++) admission.begin(listOrders);
    expect(await reason(client.listOrders({}))).toBe("OVERLOADED");
    expect(await reason(client.getOrder({ orderId: 1n }))).toBe("NotFound");
    expect([made(), admission.underWay()]).toEqual([1, 2 * START_LIMIT]);
  });

  test("where it can't be answered in time, while others wait", async () => {
    let now = 0;
    const admission = createAdmission({ clock: () => now });
    const next = { unary: failing(Codes.NotFound) } as unknown as Transport;
    const client = createClient(OrderService, withAdmission(next, admission, errors));
    for (let i = 0; i < MEMORY; i++) {
      const alone = admission.begin(getOrder);
      now += 20;
      admission.end(alone, true);
    }
    for (let i = 0; i < CALM; i++) admission.begin(getOrder);
    expect(await reason(client.getOrder({ orderId: 1n }, { timeoutMs: 10 }))).toBe("DEADLINE_EXCEEDED");
    expect(await reason(client.getOrder({ orderId: 1n }, { timeoutMs: 100 }))).toBe("NotFound");
  });
});
