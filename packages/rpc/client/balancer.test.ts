import { create, type DescMethod, type DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { errors, reasonOf, rpcError } from "../../../processes/errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { noSuchRpc } from "../server/refused-calls.ts";
import { createBalancer } from "./balancer.ts";
import { markNeverRan, neverRan } from "./failed-call.ts";
import { withLoadBalancing } from "./pipeline.ts";
import type { Replica } from "./replica.ts";

const unsent = () => markNeverRan(new ConnectError("connection refused", Code.Unavailable));
const lost = () => new ConnectError("socket hang up", Code.Aborted);

let now: number;
/** Who was called, in this order; who fails, and how; who says that it serves. */
let called: string[];
let failing: Map<string, () => unknown>;
let asked: string[];
let serving: Set<string>;
/** Who answers nothing now, not even whether it is there; and how often each was asked that. */
let silent: Map<string, Promise<unknown>>;
let questions: string[];
/** Whose streams were given up. */
let left: string[];
/** What time each stream was given. */
let limits: (number | undefined)[];
let sleepers: { readonly until: number; readonly wake: () => void }[];
beforeEach(() => {
  now = 0;
  silent = new Map();
  questions = [];
  left = [];
  limits = [];
  sleepers = [];
  called = [];
  failing = new Map();
  asked = [];
  serving = new Set();
});

const replica = (url: string): Replica => ({
  url,
  address: undefined,
  transport: {
    unary: async (method: DescMethodUnary) => {
      called.push(url);
      await silent.get(url);
      const failure = failing.get(url);
      if (failure) throw failure();
      const [header, trailer] = [new Headers(), new Headers()];
      return { stream: false, service: method.parent, method, header, trailer, message: create(method.output) };
    },
    stream: async (_method: DescMethod, signal?: AbortSignal, timeoutMs?: number) => {
      called.push(url);
      limits.push(timeoutMs);
      const failure = failing.get(url);
      if (failure) throw failure();
      const gone = new Promise<never>((_, reject) =>
        signal?.addEventListener("abort", () => {
          left.push(url);
          reject(new ConnectError("the caller has gone", Code.Canceled));
        }),
      );
      await Promise.race([silent.get(url), gone]);
      return { message: createAsyncIterable([url]) };
    },
  } as unknown as Transport,
  isServing: async () => {
    asked.push(url);
    return serving.has(url);
  },
  isSilent: async () => {
    questions.push(url);
    return silent.has(url);
  },
  streams: () => 0,
  endCalls: () => {},
  close: () => {},
});

const sleep = (ms: number) => new Promise<void>((wake) => sleepers.push({ until: now + ms, wake }));
const deps = { clock: () => now, random: () => 0.5, sleep, errors };

function balance(...urls: string[]) {
  const transport = withLoadBalancing(createBalancer(urls.map(replica), deps), deps);
  return (signal?: AbortSignal, method: DescMethodUnary = CategoryService.method.getCategory, input = {}) =>
    transport.unary(method, signal, 1000, undefined, input).then(() => "answered", ConnectError.from);
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

async function advance(ms: number): Promise<void> {
  for (const end = now + ms; now < end; ) {
    now += 10;
    const due = sleepers.filter(({ until }) => until <= now);
    sleepers = sleepers.filter(({ until }) => until > now);
    for (const { wake } of due) wake();
    await nextTurn();
  }
}

/** Makes calls, each in a tick of its own, and says who was called. */
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

  test("get all calls of one tick", async () => {
    const call = balance("a", "b");
    await Promise.all([call(), call(), call()]);
    await nextTurn();
    await Promise.all([call(), call()]);
    expect(called.join(" ")).toBe("a a a b b");
  });

  test("stay so when they refuse a call themselves, or the caller gives up", async () => {
    const call = balance("a", "b");
    failing.set("a", () => rpcError("OVERLOADED", "too much"));
    expect(await call()).toMatchObject({ rawMessage: "too much" });
    failing.set("b", lost);
    await nextTurn();
    expect(await call(AbortSignal.abort())).toMatchObject({ code: Code.Aborted });
    failing.clear();
    await nextTurn();
    expect([await calls(call, 4), asked]).toEqual(["a b a b", []]);
  });
});

describe("a call that surely never ran", () => {
  test("goes to the next replica, and all of its tick with it", async () => {
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
    const slow = (url: string): Replica => {
      const { transport, ...rest } = replica(url);
      const unary: Transport["unary"] = (method, signal, timeoutMs, ...others) => {
        left.push(timeoutMs);
        now += 300;
        return transport.unary(method, signal, timeoutMs, ...others);
      };
      return { ...rest, transport: { ...transport, unary } };
    };
    for (const url of "ab") failing.set(url, unsent);
    const transport = withLoadBalancing(createBalancer([slow("a"), slow("b")], deps), deps);
    await transport.unary(CategoryService.method.getCategory, undefined, 1000, undefined, {}).catch(() => {});
    expect(left).toEqual([1000, 700]);
  });
});

describe("an address that another service has taken over", () => {
  const open = () => withLoadBalancing(createBalancer(["a", "b"].map(replica), deps), deps);
  const write = (transport: Transport) =>
    transport.unary(CategoryService.method.deleteCategory, undefined, 1000, undefined, {});
  const watch = (transport: Transport) =>
    transport.stream(PetService.method.watchPets, undefined, 1000, undefined, createAsyncIterable([{}]));

  test.each([
    ["a write", write],
    ["a stream", watch],
  ])("sends %s on to the next replica, and is no reason to blame it if there is none", async (_, call) => {
    const transport = open();
    failing.set("a", () => noSuchRpc(errors));
    await call(transport);
    expect(called).toEqual(["a", "b"]);
    failing.set("b", () => noSuchRpc(errors));
    const error = await call(transport).then(() => expect.fail("it was answered"), ConnectError.from);
    expect([error.rawMessage, reasonOf(error)?.reason]).toEqual([
      expect.stringMatching(/^\w+Service does not know this call now\. Nothing was done\. Try again in a second\.$/),
      "UNAVAILABLE",
    ]);
    expect(asked, "whether it serves").toEqual([]);
  });

  test("says nothing of a replica that may have run the call before", async () => {
    const call = balance("a", "b");
    silent.set("a", new Promise(() => {}));
    failing.set("b", () => noSuchRpc(errors));
    const read = call();
    await advance(600);
    expect(await read).toMatchObject({ rawMessage: "a is silent" });
  });
});

describe("a replica that did not answer", () => {
  test("is passed over after a lost reply, and that call is not made again", async () => {
    const call = balance("a", "b");
    failing.set("a", lost);
    expect(await call()).toMatchObject({ code: Code.Aborted });
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
    const balancer = createBalancer([slow, replica("b")], deps);
    balancer.failed(slow);
    for (; now < 5_000; now += 100) expect(balancer.next()?.url).toBe("b");
    expect(slow.isServing).toHaveBeenCalledTimes(1);
    resolve(true);
    await nextTurn();
    expect([balancer.next()?.url, balancer.next()?.url].sort()).toEqual(["a", "b"]);
  });

  test("is called all the same when there is no other", async () => {
    const call = balance("a", "b");
    for (const url of "ab") failing.set(url, lost);
    expect(await calls(call, 5)).toBe("a b a b a");
    failing.clear();
    expect(await call()).toBe("answered");
  });
});

describe("a replica that says it is unavailable", () => {
  const away = () => rpcError("UNAVAILABLE", "the store");

  test("is asked whether it serves, and passed over until it says so", async () => {
    const call = balance("a", "b");
    failing.set("a", away);
    expect(await call()).toMatchObject({ rawMessage: "the store" });
    await nextTurn();
    expect([await calls(call, 3), asked]).toEqual(["b b b", ["a", "a"]]);
    failing.clear();
    serving.add("a");
    now += 1_500;
    await call();
    await nextTurn();
    expect([await calls(call, 2), asked]).toEqual(["a b", ["a", "a", "a"]]);
  });

  test("keeps its turn when it serves, as when it speaks of what another service did not answer", async () => {
    const call = balance("a", "b");
    failing.set("a", away);
    serving.add("a");
    expect([await calls(call, 4), asked]).toEqual(["a b a b", ["a", "a"]]);
  });

  test("is asked by one of many calls, and is called all the same when there is no other", async () => {
    const call = balance("a");
    failing.set("a", away);
    await Promise.all([call(), call(), call()]);
    await nextTurn();
    expect([await calls(call, 3), asked]).toEqual(["a a a", ["a", "a"]]);
  });
});

describe("a replica that owes answers", () => {
  const timedOut = () => new ConnectError("the operation timed out", Code.DeadlineExceeded);
  /** From now on it says nothing, until the result is called. */
  const silence = (url: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    silent.set(url, promise);
    return () => {
      silent.delete(url);
      resolve();
    };
  };

  test("is not blamed for the time of a caller: it is asked once, and has its turn", async () => {
    const call = balance("a", "b");
    failing.set("a", timedOut);
    expect(await call()).toMatchObject({ code: Code.DeadlineExceeded });
    await nextTurn();
    expect(await calls(call, 4)).toBe("b a b a");
    await advance(3_000);
    expect([questions, asked]).toEqual([["a"], []]);
    expect(await calls(call, 4)).toBe("b a b a");
  });

  test("is left alone when it says that it is there, however long a call takes", async () => {
    const call = balance("a");
    const answer = silence("a");
    const slow = call();
    silent.delete("a"); // it has the call, and says that it is there
    await advance(10_000);
    expect(await calls(call, 2)).toBe("a a");
    expect(asked).toEqual([]);
    answer();
    expect(await slow).toBe("answered");
  });

  test("is not asked while it answers other calls", async () => {
    const call = balance("a");
    const answer = silence("a");
    const slow = call();
    silent.delete("a");
    for (let i = 0; i < 50; i++) {
      await advance(100);
      await call();
    }
    expect(questions).toEqual([]);
    answer();
    await slow;
  });

  test("is out when it leaves two questions unanswered, and what may be repeated moves on", async () => {
    const call = balance("a", "b");
    const answer = silence("a");
    const reads = [call(), call()];
    const write = call(undefined, CategoryService.method.deleteCategory);
    await nextTurn();
    expect(await calls(call, 1)).toBe("b");
    called = [];
    await advance(600);
    expect(await Promise.all(reads)).toEqual(["answered", "answered"]);
    expect(called).toEqual(["b", "b"]);
    expect(questions).toEqual(["a", "a"]);
    expect(await calls(call, 3)).toBe("b b b");
    // What may have had effects is waited for.
    answer();
    expect(await write).toBe("answered");
  });

  test("may have run what moved on and found no other", async () => {
    const call = balance("a", "b");
    silence("a");
    failing.set("b", unsent);
    const read = call();
    await advance(600);
    expect(neverRan((await read) as ConnectError)).toBe(false);
  });

  test("may have run what then finds only silent ones", async () => {
    const call = balance("a", "b");
    silence("b");
    await call(); // by a, so that the next is b's
    await nextTurn();
    const read = call();
    await advance(600);
    expect(await read).toBe("answered");
    silence("a");
    const create = call(undefined, CategoryService.method.createCategory, { requestId: "k" });
    await advance(600);
    expect(await create).toMatchObject({ rawMessage: "a is silent" });
  });

  test("is out when a stream does not begin there, which begins elsewhere", async () => {
    const transport = withLoadBalancing(createBalancer(["a", "b"].map(replica), deps), deps);
    const watch = async () => {
      const input = createAsyncIterable([{}]);
      const { message } = await transport.stream(PetService.method.watchPets, undefined, 3_000, undefined, input);
      return Array.fromAsync(message);
    };
    silence("a");
    const begun = watch();
    await advance(600);
    expect(await begun).toEqual(["b"]);
    expect([left, questions]).toEqual([["a"], ["a", "a"]]);
    expect(limits, "the second has what remains of the time").toEqual([2_990, 2_490]);
    for (let i = 0; i < 3; i++) expect(await watch()).toEqual(["b"]);
  });

  test.each(["leaves", "is told that something is unavailable"])(
    "is left when the caller of a stream %s",
    async (why) => {
      const transport = withLoadBalancing(createBalancer(["a", "b"].map(replica), deps), deps);
      silent.set("a", why === "leaves" ? new Promise(() => {}) : Promise.reject(rpcError("UNAVAILABLE", "no store")));
      const caller = new AbortController();
      const input = createAsyncIterable([{}]);
      const begun = transport
        .stream(PetService.method.watchPets, caller.signal, undefined, undefined, input)
        .then(() => "begun", ConnectError.from);
      await nextTurn();
      if (why === "leaves") caller.abort();
      const error = await Promise.race([begun, advance(200).then(() => "hangs")]);
      expect(error).toMatchObject({ code: why === "leaves" ? Code.Canceled : Code.Unavailable });
      expect([called, left, asked]).toEqual(why === "leaves" ? [["a"], ["a"], []] : [["a"], [], ["a"]]);
    },
  );

  test("is left alone when it says that it is there, however long a stream takes to begin or lasts", async () => {
    const transport = withLoadBalancing(createBalancer(["a", "b"].map(replica), deps), deps);
    const answer = silence("a");
    const input = createAsyncIterable([{}]);
    const begun = transport.stream(PetService.method.watchPets, undefined, undefined, undefined, input);
    silent.delete("a");
    await advance(10_000);
    answer();
    const { message } = await begun;
    expect([await Array.fromAsync(message), left]).toEqual([["a"], []]);
    questions = [];
    await advance(10_000);
    expect(questions).toEqual([]);
  });

  test("is found out though no caller waits for it long", async () => {
    const call = balance("a", "b");
    silent.set("a", Promise.resolve());
    failing.set("a", timedOut);
    expect(await call()).toMatchObject({ code: Code.DeadlineExceeded });
    await advance(600);
    expect(await calls(call, 3)).toBe("b b b");
  });

  test("fails calls at once when there is no other, until it answers again", async () => {
    const call = balance("a");
    const answer = silence("a");
    const read = call();
    await advance(600);
    expect(await read).toMatchObject({ code: Code.Unavailable });
    called = [];
    for (let i = 0; i < 5; i++) {
      await nextTurn();
      const error = (await call()) as ConnectError;
      expect([error.rawMessage, reasonOf(error)?.reason]).toEqual([
        "CategoryService does not answer now. Try again in a second.",
        "UNAVAILABLE",
      ]);
    }
    expect(called).toEqual([]);
    await advance(10_000);
    answer();
    await advance(1_000);
    expect(await call()).toBe("answered");
  });

  test("is called again when it is no longer silent, but broken, and there is no other", async () => {
    const call = balance("a");
    const answer = silence("a");
    const read = call();
    await advance(600);
    await read;
    answer();
    await advance(1_000);
    failing.set("a", unsent);
    expect(await call()).toMatchObject({ rawMessage: "connection refused" });
  });
});
