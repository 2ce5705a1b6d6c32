import { type Code, Code as Codes, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { OrderService } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import { markRunning } from "../client/failed-call.ts";
import { type Admission, createAdmission, type Evidence } from "./admission.ts";
import { FEW_CALLS, MEMORY, START_LIMIT } from "./limit.ts";
import { withAdmission } from "./transport.ts";

const { getOrder, listOrders } = OrderService.method;

function start(unary: () => Promise<unknown>) {
  const ended: Evidence[] = [];
  const counting = createAdmission({ clock: () => 0 });
  const admission: Admission = {
    ...counting,
    end(call, evidence) {
      ended.push(evidence);
      counting.end(call, evidence);
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
  [Codes.NotFound, "at least"],
  [Codes.FailedPrecondition, "at least"],
  [Codes.DeadlineExceeded, "at least"],
  [Codes.Unavailable, "nothing"],
  [Codes.Canceled, "nothing"],
])("a call that ends with code %i is over, and shows what it takes: %s", async (code, evidence) => {
  const { admission, ended, client } = start(failing(code));
  expect(await reason(client.getOrder({ orderId: 1n }))).toBe(Codes[code]);
  expect([admission.underWay(), ended]).toEqual([0, [evidence]]);
});

describe("a call that its caller has given up counts", () => {
  const givenUp = (over: Promise<boolean>) => () =>
    Promise.reject(markRunning(new ConnectError("x", Codes.Canceled), over));

  test.each<[boolean, Evidence]>([
    [true, "at least"],
    [false, "nothing"],
  ])("until the service is done with it: %s", async (isAnswered, evidence) => {
    const over = Promise.withResolvers<boolean>();
    const { admission, ended, client } = start(givenUp(over.promise));
    expect(await reason(client.getOrder({ orderId: 1n }))).toBe("Canceled");
    expect([admission.underWay(), ended]).toEqual([1, []]);
    over.resolve(isAnswered);
    await over.promise;
    expect([admission.underWay(), ended]).toEqual([0, [evidence]]);
  });

  test("for a second, where the service hangs, and once", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const over = Promise.withResolvers<boolean>();
    const { admission, client } = start(givenUp(over.promise));
    await reason(client.getOrder({ orderId: 1n }));
    await vi.advanceTimersByTimeAsync(999);
    expect(admission.underWay()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    over.resolve(true);
    await over.promise;
    expect(admission.underWay()).toBe(0);
  });
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
      admission.end(alone, "all");
    }
    for (let i = 0; i < FEW_CALLS; i++) admission.begin(getOrder);
    expect(await reason(client.getOrder({ orderId: 1n }, { timeoutMs: 10 }))).toBe("DEADLINE_EXCEEDED");
    expect(await reason(client.getOrder({ orderId: 1n }, { timeoutMs: 100 }))).toBe("NotFound");
  });
});
