import { EventEmitter, once } from "node:events";
import { connect, constants, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { type Code, Code as Codes, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { OrderService } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import { markRunning } from "../client/failed-call.ts";
import { type Admission, createAdmission, type Evidence, withAdmission } from "./admission.ts";
import { FEW_CALLS, MEMORY, MIN_LIMIT, START_LIMIT, TOLERANCE } from "./limit.ts";

const { listOrders, getOrder, createOrder, updateOrder } = OrderService.method;
const all = [listOrders, getOrder, createOrder, updateOrder];

function start() {
  let now = 1_000;
  const admission = createAdmission({ clock: () => now });
  return {
    ...admission,
    advance: (ms: number) => {
      now += ms;
    },
    fill(method: typeof listOrders | typeof getOrder | typeof createOrder | typeof updateOrder) {
      const begun = [];
      while (admission.hasRoom(method)) begun.push(admission.begin(method));
      return begun;
    },
  };
}

test("what goes first has room where others have none", () => {
  const admission = start();
  const rooms = all.map((method) => admission.fill(method).length);
  expect(rooms[0]).toBe(START_LIMIT);
  for (const room of rooms.slice(1)) expect(room).toBeGreaterThan(0);
  expect(all.map((method) => admission.hasRoom(method))).toEqual([false, false, false, false]);
});

test("where others have taken all room, one who holds less than its part may call, up to twice the room", () => {
  const admission = start();
  for (const _ of admission.fill(listOrders)) admission.hold("greedy");
  expect(admission.hasRoom(listOrders, "greedy")).toBe(false);
  const ends = [];
  while (admission.hasRoom(listOrders, "modest")) {
    admission.begin(listOrders);
    ends.push(admission.hold("modest"));
  }
  expect(ends.length).toBeGreaterThan(START_LIMIT / 4);
  expect(ends.length).toBeLessThanOrEqual(START_LIMIT / 2);
  ends[0]?.();
  expect(admission.hasRoom(listOrders, "modest")).toBe(true);
  // Many who have little each.
  for (let i = 0; admission.hasRoom(listOrders, `${i}`); i++) {
    admission.begin(listOrders);
    admission.hold(`${i}`);
  }
  expect(admission.underWay()).toBe(2 * START_LIMIT);
  expect(admission.isFull(listOrders)).toBe(true);
});

test("who goes away before he is answered keeps his part for as long as such calls take", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const admission = start();
  const alone = admission.begin(listOrders);
  admission.advance(40);
  admission.end(alone, "all");
  const ask = (writableEnded: boolean) => {
    const response = Object.assign(new EventEmitter(), { writableEnded });
    admission.letIn(listOrders, "one", response);
    response.emit("close");
  };
  admission.fill(listOrders);
  const mayCall = () => admission.hasRoom(listOrders, "one");
  for (let i = 0; i < START_LIMIT; i++) ask(true);
  expect(mayCall()).toBe(true);
  for (let i = 0; i < START_LIMIT; i++) ask(false);
  await vi.advanceTimersByTimeAsync(TOLERANCE * 40 - 1);
  expect(mayCall()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(mayCall()).toBe(true);
});

test("so does who resets his streams of HTTP/2, which node reports as finished", async () => {
  const admission = start();
  const alone = admission.begin(listOrders);
  admission.advance(40);
  admission.end(alone, "all");
  admission.fill(listOrders);
  const closed = Promise.withResolvers<void>();
  let [open, arrived] = [START_LIMIT, 0];
  const server = createServer({ settings: { maxConcurrentStreams: START_LIMIT } }, (_, response) => {
    admission.letIn(listOrders, "one", response);
    response.once("close", () => --open === 0 && closed.resolve());
    response.stream.on("error", () => {});
    if (++arrived === START_LIMIT) for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const streams = Array.from({ length: START_LIMIT }, () => session.request({ ":path": "/" }).on("error", () => {}));
  await closed.promise;
  expect(admission.hasRoom(listOrders, "one")).toBe(false);
});

test("a caller that holds nothing is forgotten", () => {
  const admission = start();
  admission.fill(listOrders);
  for (let i = 0; i < 1_000; i++) admission.hold(`${i}`)();
  // Were they counted, each would have a thousandth.
  const end = admission.hold("modest");
  expect(admission.hasRoom(listOrders, "modest")).toBe(true);
  end();
});

test("each that ends makes room for one more, however it ended", () => {
  const admission = start();
  const begun = admission.fill(listOrders);
  for (const [i, call] of begun.entries()) {
    admission.end(call, i % 2 === 0 ? "all" : "nothing");
    expect(admission.hasRoom(listOrders)).toBe(true);
    admission.begin(listOrders);
    expect(admission.hasRoom(listOrders)).toBe(false);
  }
  expect(admission.underWay()).toBe(begun.length);
});

test("what never ran says nothing of the delay", () => {
  const admission = start();
  const calls = (ms: number, evidence: Evidence) => {
    for (let i = 0; i < 200; i++) {
      const begun = admission.fill(listOrders);
      admission.advance(ms);
      for (const call of begun) admission.end(call, evidence);
    }
  };
  const alone = admission.begin(listOrders);
  admission.advance(20);
  admission.end(alone, "all");
  calls(1, "nothing");
  expect(admission.limit()).toBe(START_LIMIT);
  calls(20, "all");
  expect(admission.limit()).toBeGreaterThan(2 * START_LIMIT);
});

describe("after an overload", () => {
  function overloaded() {
    const admission = start();
    const alone = admission.begin(listOrders);
    admission.advance(20);
    admission.end(alone, "all");
    const begun = admission.fill(listOrders);
    for (let i = 0; i < 100; i++) {
      admission.advance(200);
      for (const call of begun.splice(0, 20)) admission.end(call, "all");
      begun.push(...admission.fill(listOrders));
    }
    expect(admission.limit()).toBe(MIN_LIMIT);
    for (const call of begun) admission.end(call, "all");
    return admission;
  }

  test("as much may come at once as at first when nothing has been under way for a moment", () => {
    const admission = overloaded();
    admission.advance(100);
    expect(admission.fill(listOrders).length).toBe(START_LIMIT);
  });

  test("nothing is over yet when all that was under way is answered together", () => {
    const admission = overloaded();
    admission.advance(10);
    expect(admission.fill(listOrders).length).toBeLessThan(2 * MIN_LIMIT);
  });
});

test("a call that can't be answered in time is too late while others wait, and tried where they don't", () => {
  const admission = start();
  for (let i = 0; i < MEMORY; i++) {
    const alone = admission.begin(getOrder);
    admission.advance(20);
    admission.end(alone, "all");
  }
  expect(admission.isTooLate(getOrder, 10)).toBe(false);
  for (let i = 0; i < FEW_CALLS; i++) admission.begin(getOrder);
  expect(admission.isTooLate(getOrder, 10)).toBe(true);
  expect(admission.isTooLate(getOrder, 30)).toBe(false);
  expect(admission.isTooLate(listOrders, 1)).toBe(false); // nobody knows what it takes
  let refused = 0;
  while (admission.isTooLate(getOrder, 10)) refused++;
  expect(refused).toBeGreaterThan(10);
  expect(refused).toBeLessThan(100); // it may be faster than it was
});

test("what callers leave a call says nothing of what it takes", () => {
  const admission = start();
  const takes = (ms: number) => {
    const call = admission.begin(getOrder);
    admission.advance(ms);
    admission.end(call, "all");
  };
  for (let i = 0; i < MEMORY; i++) takes(40);
  for (let i = 0; i < FEW_CALLS; i++) admission.begin(getOrder);
  for (let i = 0; i < 1_000; i++) admission.isTooLate(getOrder, 5);
  expect(admission.isTooLate(getOrder, 39)).toBe(true);
  // None of them takes longer than when few were under way, so there is no reason to let in fewer.
  for (let i = 0; i < 100; i++) takes(40);
  expect(admission.limit()).toBe(START_LIMIT);
});

test("a call that fails or is cut short says nothing of what others take, unless it took longer", () => {
  const admission = start();
  const takes = (ms: number, evidence: Evidence) => {
    const call = admission.begin(getOrder);
    admission.advance(ms);
    admission.end(call, evidence);
  };
  takes(5, "at least");
  for (let i = 0; i < MEMORY; i++) takes(40, "all");
  // In a quiet hour most callers have no time.
  for (let i = 0; i < 10 * MEMORY; i++) takes(5, "at least");
  for (let i = 0; i < FEW_CALLS; i++) admission.begin(getOrder);
  expect(admission.isTooLate(getOrder, 39)).toBe(true);
  for (let i = 0; i < 100; i++) takes(40, "all");
  expect(admission.limit()).toBe(START_LIMIT);
  for (let i = 0; i < 1_000; i++) takes(400, "at least");
  expect(admission.limit()).toBe(MIN_LIMIT);
});

test("what has become faster is found out, though there are never few under way", () => {
  const admission = start();
  const takes = (ms: number) => {
    const call = admission.begin(getOrder);
    admission.advance(ms);
    admission.end(call, "all");
  };
  for (let i = 0; i < MEMORY; i++) takes(800);
  for (let i = 0; i < 2 * FEW_CALLS; i++) admission.begin(getOrder);
  for (let i = 0; i < 100 * MEMORY; i++) if (!admission.isTooLate(getOrder, 500)) takes(10);
  expect(admission.isTooLate(getOrder, 500)).toBe(false);
});

test("the first calls of a process, which take long, make nobody too late", () => {
  const admission = start();
  const first = admission.begin(getOrder);
  admission.advance(5_000);
  admission.end(first, "all");
  for (let i = 0; i < FEW_CALLS; i++) admission.begin(getOrder);
  expect(admission.isTooLate(getOrder, 1_000)).toBe(false);
});

test("a call whose time is over is too late, however little there is to do", () => {
  const admission = start();
  expect([admission.isTooLate(getOrder, 0), admission.isTooLate(getOrder, -1)]).toEqual([true, true]);
  expect(admission.isTooLate(getOrder, 1)).toBe(false);
});

test("a pause to find out what calls take alone is short, and only made where calls are refused anyway", () => {
  const admission = start();
  admission.fill(listOrders);
  admission.advance(60_000);
  expect(admission.limit()).toBe(START_LIMIT);
  expect(admission.hasRoom(listOrders)).toBe(false);
  expect(admission.limit()).toBe(FEW_CALLS);
  admission.advance(1_000);
  expect(admission.limit()).toBe(START_LIMIT);
});

function startTransport(unary: () => Promise<unknown>) {
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
  const { admission, ended, client } = startTransport(failing(code));
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
    const { admission, ended, client } = startTransport(givenUp(over.promise));
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
    const { admission, client } = startTransport(givenUp(over.promise));
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
    const { admission, client, made } = startTransport(failing(Codes.NotFound));
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
