import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { seededRandom } from "@petstore/runtime/clock";
import { type Rate, rate as rateKind } from "@petstore/runtime/rate";
import type { Fault } from "@petstore/testing";
import { expect, onTestFinished, test } from "vitest";
import { reasonOf } from "#errors";
import { OrderService, WatchOrdersResponseSchema } from "#proto/petstore/order/v1/order_service_pb.ts";
import { createFaults, readFaults, setFaultsFile } from "./faults.ts";
import { servedInProcess } from "./fixtures/gateway.ts";

/** The service of orders behind faults, and how often it was called and how long they waited. */
function behind(faults: readonly Fault[], rate?: Rate) {
  const seen = { calls: 0, slept: [] as number[] };
  const transport = servedInProcess(OrderService, {
    createOrder() {
      seen.calls++;
      return {};
    },
    getOrder: () => ({}),
    async *watchOrders() {
      yield create(WatchOrdersResponseSchema, { response: { case: "heartbeat", value: {} } });
      for (let id = 1n; ; id++)
        yield create(WatchOrdersResponseSchema, { response: { case: "event", value: { order: { id } } } });
    },
  });
  const sleep = async (ms: number) => void seen.slept.push(ms);
  const all = createFaults({ rate }, { random: seededRandom(1), sleep });
  all.set(faults);
  const orders = createClient(OrderService, all.strike(transport));
  const reasonFor = (call: Promise<unknown>) =>
    call.then(
      () => "",
      (error) => reasonOf(error)?.reason ?? error,
    );
  return { seen, all, orders, order: (options?: object) => reasonFor(orders.createOrder({}, options)), reasonFor };
}
const CREATE = "petstore.order.v1.OrderService/CreateOrder";

test.each(["POST /store/orders", CREATE])(
  "%s is struck before anything happens, and nothing else is",
  async (match) => {
    const { order, seen, orders, reasonFor } = behind([{ match, rate: 1, code: "PET_NOT_FOUND" }]);
    expect(await order()).toBe("PET_NOT_FOUND");
    expect(seen.calls).toBe(0);
    expect(await reasonFor(orders.getOrder({}))).toBe("");
  },
);

test("or after all has happened", async () => {
  const { order, seen } = behind([{ match: "*", rate: 1, code: "UNAVAILABLE", when: "after" }]);
  expect(await order()).toBe("UNAVAILABLE");
  expect(seen.calls).toBe(1);
});

test("so many times, then the next fault, and again from the beginning after a restart", async () => {
  const { order, all } = behind([
    { match: "*", rate: 1, times: 2, code: "UNAVAILABLE" },
    { match: CREATE, rate: 1, times: 1, code: "OVERLOADED" },
  ]);
  const four = async () => [await order(), await order(), await order(), await order()];
  const expected = ["UNAVAILABLE", "UNAVAILABLE", "OVERLOADED", ""];
  expect(await four()).toEqual(expected);
  all.restart(Math.random);
  expect(await four()).toEqual(expected);
  all.set([]);
  expect(await order()).toBe("");
});

test("where there are rates, a call can be beyond one", async () => {
  const fault = { match: "*", rate: 1, code: "RATE_LIMITED" };
  const { order } = behind([fault], rateKind.read("10/s"));
  expect(await order()).toBe("RATE_LIMITED");
  expect(() => readFaults([fault])).toThrow("Fault 1: code can be RATE_LIMITED only where there are rates");
});

test("at a rate, drawn from the seed", async () => {
  const { order, all } = behind([{ match: "*", rate: 0.25, code: "INTERNAL" }]);
  const many = (seed: number) => {
    all.restart(seededRandom(seed));
    return Array.fromAsync({ length: 400 }, () => order());
  };
  const first = await many(7);
  const struck = first.filter((reason) => reason === "INTERNAL").length;
  expect(struck).toBeGreaterThan(60);
  expect(struck).toBeLessThan(140);
  expect(await many(7)).toEqual(first);
  expect(await many(8)).not.toEqual(first);
});

test("a call waits, within its time", async () => {
  const { order, seen } = behind([{ match: "*", rate: 1, delay: "2s" }]);
  expect(await order()).toBe("");
  expect(await order({ timeoutMs: 500 })).toBe("DEADLINE_EXCEEDED");
  expect(seen.slept).toEqual([2000, 500]);
  expect(seen.calls).toBe(1);
});

test("a stream breaks after so many events, heartbeats not counted", async () => {
  const { orders, reasonFor } = behind([{ match: "petstore.order.v1.OrderService/WatchOrders", rate: 1, cut: 2 }]);
  const kinds: (string | undefined)[] = [];
  const watching = (async () => {
    for await (const { response } of orders.watchOrders({})) kinds.push(response.case);
  })();
  expect(await reasonFor(watching)).toBe("UNAVAILABLE");
  expect(kinds).toEqual(["heartbeat", "event", "event"]);
});

test("an EventService stream can be cut, and can fail at once", () => {
  expect(readFaults([{ match: "GET /events", rate: 1, cut: 0 }])).toHaveLength(1);
  expect(readFaults([{ match: "GET /events", rate: 1, code: "EVENTS_EXPIRED" }])).toHaveLength(1);
});

test("every code that an operation has can be asked for", () => {
  for (const code of ["PET_NOT_FOUND", "PET_NOT_AVAILABLE", "INSUFFICIENT_STOCK", "INTERNAL"])
    expect(readFaults([{ match: "POST /store/orders", rate: 1, code }])).toHaveLength(1);
});

const all = { match: "*", rate: 1 };
test.each<[unknown, string]>([
  [{}, "The faults must be an array of objects."],
  [Array(101).fill({ ...all, code: "INTERNAL" }), "There can be 100 faults at most."],
  [[{ ...all, code: "INTERNAL" }, 1], "Fault 2: it must be an object."],
  [[{ ...all, kode: "INTERNAL" }], "Fault 1: kode is not known: there is match, rate,"],
  [[{ ...all, match: "POST /orders", code: "INTERNAL" }], "Fault 1: match must be an operation such as"],
  [[{ ...all, match: 1, code: "INTERNAL" }], "Fault 1: match must be"],
  [[{ ...all, rate: 1.1, code: "INTERNAL" }], "Fault 1: rate must be a number from 0 to 1."],
  [[{ match: "*", code: "INTERNAL" }], "Fault 1: rate must be a number from 0 to 1."],
  [[{ ...all, times: 0, code: "INTERNAL" }], "Fault 1: times must be a whole number, 1 or more."],
  [[{ ...all, delay: "soon" }], "Fault 1: delay must be a time from 0ms to 60s"],
  [[{ ...all, delay: 5 }], "Fault 1: delay must be a time from 0ms to 60s"],
  [[{ ...all, when: "never", code: "INTERNAL" }], 'Fault 1: when must be "before" or "after".'],
  [[{ ...all, when: "after", delay: "1s" }], "Fault 1: when has no effect without a code."],
  [[{ ...all, when: "after", code: "OVERLOADED" }], "Fault 1: code must be one of UNAVAILABLE, DEADLINE_EXCEEDED."],
  [
    [{ ...all, match: "GET /events", when: "after", code: "UNAVAILABLE" }],
    "Fault 1: when is for what does not stream.",
  ],
  [[{ ...all, code: "TEAPOT" }], "Fault 1: code must be one of UNAVAILABLE, OVERLOADED, DEADLINE_EXCEEDED, INTERNAL."],
  [[{ ...all, match: "GET /pets", code: "PET_NOT_FOUND" }], "Fault 1: code must be one of UNAVAILABLE, OVERLOADED"],
  [[{ ...all, match: "GET /pets", cut: 1 }], "Fault 1: cut is for what streams, such as GET /events."],
  [[{ ...all, cut: -1 }], "Fault 1: cut must be a whole number, 0 or more."],
  [[{ ...all, match: "GET /events", cut: 1, code: "INTERNAL" }], "Fault 1: code and cut exclude each other"],
  [[all], "Fault 1: it has no effect: give a delay, a code or a cut."],
])("%j makes no sense", (faults, why) => {
  expect(() => readFaults(faults)).toThrow(why);
});

test("faults that make no sense change nothing", async () => {
  const { order, all } = behind([{ match: "*", rate: 1, code: "INTERNAL" }]);
  expect(() => all.set([{}])).toThrow("Fault 1");
  expect(await order()).toBe("INTERNAL");
});

test("a file is read, or refused with the place of what is wrong", async () => {
  const dir = await mkdtemp(join(tmpdir(), "faults-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const file = join(dir, "faults.json");
  const { all, order } = behind([]);
  const read = () => setFaultsFile(all, file);
  await expect(read()).rejects.toThrow(`FAULTS_FILE=${file} can't be used. ENOENT`);
  await writeFile(file, '[\n  {"match": "*" "rate": 1}\n]');
  await expect(read()).rejects.toThrow(/can't be used\. .*JSON.*line 2/);
  await writeFile(file, '[{"match": "*", "rate": 1}]');
  await expect(read()).rejects.toThrow("Fault 1: it has no effect");
  await writeFile(file, '[{"match": "*", "rate": 1, "code": "INTERNAL"}]');
  expect(await order()).toBe("");
  await read();
  expect(await order()).toBe("INTERNAL");
});
