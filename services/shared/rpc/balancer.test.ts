import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { balancing, createBalancer } from "./balancer.ts";
import { fault } from "./fault.ts";
import * as replicas from "./replica.ts";

// Which errors these are is the replica's knowledge, and tested there.
vi.mock("./replica.ts");
const unsent = () => new ConnectError("connection refused", Code.Unavailable);
const lost = () => new ConnectError("socket hang up", Code.Aborted);

let now: number;
/** Who was called, in this order; who fails, and how; who says that it serves. */
let called: string[];
let failing: Map<string, () => unknown>;
let asked: string[];
let serving: Set<string>;
beforeEach(() => {
  now = 0;
  called = [];
  failing = new Map();
  asked = [];
  serving = new Set();
  vi.mocked(replicas.neverRan).mockImplementation(({ code }) => code === Code.Unavailable);
});

const replica = (url: string): replicas.Replica => ({
  url,
  transport: {
    unary: async (method: DescMethodUnary) => {
      called.push(url);
      await undefined;
      const failure = failing.get(url);
      if (failure) throw failure();
      const [header, trailer] = [new Headers(), new Headers()];
      return { stream: false, service: method.parent, method, header, trailer, message: create(method.output) };
    },
  } as unknown as Transport,
  isServing: async () => {
    asked.push(url);
    return serving.has(url);
  },
  close: () => {},
});

function balance(...urls: string[]) {
  const deps = { clock: () => now, random: () => 0.5 };
  const transport = balancing(createBalancer(urls.map(replica), deps), urls.length, deps);
  return (signal?: AbortSignal) =>
    transport
      .unary(CategoryService.method.getCategory, signal, 1000, undefined, {})
      .then(() => "answered", ConnectError.from);
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Makes calls, each in a turn of its own, and says who was called. */
async function calls(call: ReturnType<typeof balance>, count: number): Promise<string> {
  called = [];
  for (let i = 0; i < count; i++) {
    await call();
    await nextTurn();
  }
  return called.join(" ");
}

describe("replicas that are ready", () => {
  test("take turns", async () => {
    expect(await calls(balance("a", "b", "c"), 7)).toBe("a b c a b c a");
  });

  test("get all calls of one turn of the event loop", async () => {
    const call = balance("a", "b");
    await Promise.all([call(), call(), call()]);
    await nextTurn();
    await Promise.all([call(), call()]);
    expect(called.join(" ")).toBe("a a a b b");
  });

  test("stay so when they refuse a call themselves, or the caller gives up", async () => {
    const call = balance("a", "b");
    failing.set("a", () => fault("UNAVAILABLE", "the store"));
    expect(await call()).toMatchObject({ rawMessage: "the store" });
    failing.set("b", lost);
    await nextTurn();
    expect(await call(AbortSignal.abort())).toMatchObject({ code: Code.Aborted });
    failing.clear();
    await nextTurn();
    expect([await calls(call, 4), asked]).toEqual(["a b a b", []]);
  });
});

describe("a call that surely never ran", () => {
  test("goes to the next replica, and all of its turn with it", async () => {
    const call = balance("a", "b", "c");
    failing.set("a", unsent);
    expect(await Promise.all([call(), call()])).toEqual(["answered", "answered"]);
    expect(called.sort().join(" ")).toBe("a a b c");
  });

  test("fails when every replica was tried once", async () => {
    const call = balance("a", "b", "c");
    for (const url of "abc") failing.set(url, unsent);
    for (const outcome of await Promise.all([call(), call()]))
      expect(outcome).toMatchObject({ rawMessage: "connection refused" });
    expect(called.sort().join(" ")).toBe("a a b b c c");
  });

  test("has what remains of the time", async () => {
    const left: unknown[] = [];
    const slow = (url: string): replicas.Replica => {
      const { transport, ...rest } = replica(url);
      const unary: Transport["unary"] = (method, signal, timeoutMs, ...others) => {
        left.push(timeoutMs);
        now += 300;
        return transport.unary(method, signal, timeoutMs, ...others);
      };
      return { ...rest, transport: { ...transport, unary } };
    };
    const deps = { clock: () => now, random: () => 0.5 };
    for (const url of "ab") failing.set(url, unsent);
    const transport = balancing(createBalancer([slow("a"), slow("b")], deps), 2, deps);
    await transport.unary(CategoryService.method.getCategory, undefined, 1000, undefined, {}).catch(() => {});
    expect(left).toEqual([1000, 700]);
  });
});

describe("a replica that did not answer", () => {
  test.each([
    ["a lost reply", lost],
    ["a time that ran out", () => new ConnectError("the operation timed out", Code.DeadlineExceeded)],
  ])("is passed over after %s, and that call is not made again", async (_, failure) => {
    const call = balance("a", "b");
    failing.set("a", failure);
    expect(await call()).toMatchObject({ code: failure().code });
    await nextTurn();
    expect(await calls(call, 3)).toBe("b b b");
  });

  test("has its turn again when it says that it serves", async () => {
    const call = balance("a", "b");
    failing.set("a", lost);
    serving.add("a");
    await call();
    await nextTurn();
    failing.clear();
    expect(await calls(call, 4)).toBe("b a b a");
    expect(asked).toEqual(["a"]);
  });

  test("is asked again at growing intervals, up to a limit", async () => {
    const call = balance("a", "b");
    failing.set("a", lost);
    await call();
    const times: number[] = [];
    for (; now < 40_000; now += 10) {
      await nextTurn();
      const before = asked.length;
      await call();
      if (asked.length > before) times.push(now);
    }
    expect(new Set(asked)).toEqual(new Set("a"));
    expect(times).toEqual([0, 1000, 2600, 5160, 9260, 15820, 25820, 35820]);
  });

  test("is not asked again while it thinks", async () => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const slow = { ...replica("a"), isServing: vi.fn(() => promise) };
    const balancer = createBalancer([slow, replica("b")], { clock: () => now, random: () => 0.5 });
    balancer.failed(slow);
    for (; now < 5_000; now += 100) expect(balancer.next().url).toBe("b");
    expect(slow.isServing).toHaveBeenCalledTimes(1);
    resolve(true);
    await nextTurn();
    expect([balancer.next().url, balancer.next().url].sort()).toEqual(["a", "b"]);
  });

  test("is called all the same when there is no other", async () => {
    const call = balance("a", "b");
    for (const url of "ab") failing.set(url, lost);
    expect(await calls(call, 5)).toBe("a b a b a");
    failing.clear();
    expect(await call()).toBe("answered");
  });
});
