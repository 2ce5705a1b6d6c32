/** Replicas that come and go, as the addresses of a host name change. */
import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { beforeEach, expect, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { noSuchRpc } from "../server/refused-calls.ts";
import { markNeverRan } from "./failed-call.ts";
import { withLoadBalancing } from "./pipeline.ts";
import type { Replica } from "./replica.ts";
import { openReplicas } from "./replicas.ts";

const MINUTE = 60_000;
let now: number;
let sleepers: { readonly until: number; readonly wake: () => void }[];
/** What each name stands for; a name that is missing can't be looked up. */
let names: Record<string, readonly string[]>;
let lookups: string[];
/** How long a look-up takes; how many are under way, and how many were at most. */
let lookupMs: number;
let looking: number;
let most: number;
/** Who accepts connections, and who hangs. */
let up: Set<string>;
let hanging: Set<string>;
/** How long a health check takes. */
let checkMs: number;
/** Where another service is. */
let taken: Set<string>;
/** Ends what hangs, with an answer or without. */
let release: () => void;
let lose: (error: ConnectError) => void;
let released: Promise<void>;
/** Every replica that is open now, by its address or, if it has none, its URL; and who was called. */
let open: string[];
/** Whose connection for calls is open. */
let carrying: Set<string>;
let called: string[];
/** Who was asked whether it is silent. */
let asked: string[];
let streams: number;
let logged: string[];
beforeEach(() => {
  now = 0;
  sleepers = [];
  names = {};
  lookups = [];
  lookupMs = 0;
  looking = 0;
  most = 0;
  up = new Set();
  hanging = new Set();
  checkMs = 0;
  taken = new Set();
  ({ promise: released, resolve: release, reject: lose } = Promise.withResolvers<void>());
  open = [];
  carrying = new Set();
  called = [];
  asked = [];
  streams = 0;
  logged = [];
});

function openReplica(url: string, address?: string): Replica {
  const place = address ?? url;
  open.push(place);
  carrying.add(place);
  const answer = async () => {
    called.push(place);
    if (!up.has(place)) throw markNeverRan(new ConnectError("connection refused", Code.Unavailable));
    if (taken.has(place)) throw noSuchRpc(errors);
    if (hanging.has(place)) await released;
  };
  return {
    url,
    address,
    transport: {
      unary: async (method: DescMethodUnary) => {
        await answer();
        const [header, trailer] = [new Headers(), new Headers()];
        return { stream: false, service: method.parent, method, header, trailer, message: create(method.output) };
      },
      stream: async () => {
        await answer();
        return { message: createAsyncIterable([place]) };
      },
    } as unknown as Transport,
    isServing: async () => {
      await (checkMs > 0 && sleep(checkMs));
      return up.has(place) && !hanging.has(place);
    },
    isSilent: async () => {
      asked.push(place);
      return hanging.has(place);
    },
    streams: () => streams,
    endCalls: () => {
      carrying.delete(place);
    },
    close: () => {
      const i = open.indexOf(place);
      if (i >= 0) open.splice(i, 1);
    },
  };
}

async function lookup(host: string): Promise<readonly string[]> {
  lookups.push(host);
  most = Math.max(most, ++looking);
  if (lookupMs > 0) await sleep(lookupMs);
  looking--;
  return names[host] ?? Promise.reject(new Error(`getaddrinfo ENOTFOUND ${host}`));
}

const sleep = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((wake, reject) => {
    const sleeper = { until: now + ms, wake };
    sleepers.push(sleeper);
    signal?.addEventListener("abort", () => {
      sleepers = sleepers.filter((one) => one !== sleeper);
      reject(signal.reason);
    });
  });
const note = (...[entry, line]: unknown[]) => void logged.push(`${line} ${JSON.stringify(entry)}`);
const deps = { clock: () => now, random: () => 0.5, sleep, errors, log: { info: note, warn: note } };

function start(...urls: string[]) {
  const { balancer, ...all } = openReplicas({ urls, open: openReplica, lookup, ...deps });
  const { unary, stream } = withLoadBalancing(balancer, { ...deps, lookAgain: all.lookAgain });
  return {
    ...all,
    call: (timeoutMs = 1000, method: DescMethodUnary = CategoryService.method.getCategory) =>
      unary(method, undefined, timeoutMs, undefined, {}).then(() => "answered", ConnectError.from),
    watch: () => stream(PetService.method.watchPets, undefined, undefined, undefined, createAsyncIterable([{}])),
  };
}
type Started = ReturnType<typeof start>;

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

async function advance(ms: number, step = 100): Promise<void> {
  await nextTurn();
  for (const end = now + ms; now < end; ) {
    now += step;
    const due = sleepers.filter(({ until }) => until <= now);
    sleepers = sleepers.filter(({ until }) => until > now);
    for (const { wake } of due) wake();
    await nextTurn();
  }
}

/** Makes calls, each in a tick of its own, and says who was called. */
async function calls({ call }: Started, count: number): Promise<string> {
  called = [];
  for (let i = 0; i < count; i++) {
    expect(await call()).toBe("answered");
    await nextTurn();
  }
  return called.join(" ");
}
const places = ({ replicas }: Started) => replicas().map(({ url, address }) => address ?? url);

/** A service whose name stands for these addresses, all of which serve. */
async function startNamed(...addresses: string[]): Promise<Started> {
  names.pet = addresses;
  up = new Set(addresses);
  const service = start("http://pet:8080");
  await advance(1_100);
  await calls(service, addresses.length); // which makes them join
  return service;
}

test("an address is one replica, and so is localhost: nothing is looked up, and no connection has an age", async () => {
  const urls = ["http://127.0.0.1:1", "https://[::1]:2", "http://localhost:3"];
  up = new Set(urls);
  const service = start(...urls);
  await advance(60 * MINUTE, 1_000);
  expect([lookups, open, sleepers]).toEqual([[], urls, []]);
  expect(await calls(service, 4)).toBe(`${urls.join(" ")} ${urls[0]}`);
});

test("each address of a name is a replica, and those of several names follow each other", async () => {
  names = { pet: ["10.0.0.2", "10.0.0.1", "10.0.0.2"], other: ["fd00::1"] };
  up = new Set(["10.0.0.1", "10.0.0.2", "fd00::1"]);
  const service = start("http://pet:8080", "http://other:8080");
  await advance(1_100);
  expect(places(service)).toEqual(["10.0.0.1", "10.0.0.2", "fd00::1"]);
  expect(open.sort(), "none is left of those from before the look-up").toEqual(places(service));
  await calls(service, 3);
  expect((await calls(service, 6)).split(" ").sort()).toEqual([...places(service), ...places(service)].sort());
});

test("what has come gets its share once it serves, and what has gone gets nothing", async () => {
  const service = await startNamed("10.0.0.1", "10.0.0.2");
  names.pet = ["10.0.0.2", "10.0.0.3"];
  await advance(5_000);
  expect(places(service)).toEqual(["10.0.0.2", "10.0.0.3"]);
  expect(await calls(service, 4)).toBe("10.0.0.2 10.0.0.2 10.0.0.2 10.0.0.2");
  up.add("10.0.0.3");
  await advance(2_000);
  await calls(service, 1);
  expect(new Set((await calls(service, 4)).split(" "))).toEqual(new Set(places(service)));
  expect(open.sort()).toEqual(places(service));
});

test("what has gone is left when its calls and its streams have ended, and no sooner", async () => {
  const service = await startNamed("10.0.0.1");
  hanging.add("10.0.0.1");
  const slow = service.call(undefined, CategoryService.method.deleteCategory);
  hanging.delete("10.0.0.1"); // it answers health checks
  names.pet = ["10.0.0.2"];
  up.add("10.0.0.2");
  await advance(10_000);
  expect([await calls(service, 2), open]).toEqual(["10.0.0.2 10.0.0.2", ["10.0.0.1", "10.0.0.2"]]);
  expect(carrying).toContain("10.0.0.1");
  streams = 1;
  release();
  expect(await slow).toBe("answered");
  await advance(10_000);
  expect(open).toEqual(["10.0.0.1", "10.0.0.2"]);
  expect(carrying, "its streams need no connection for calls").not.toContain("10.0.0.1");
  streams = 0;
  await advance(2_000);
  expect(open).toEqual(["10.0.0.2"]);
});

test("what is closed is not asked whether it is silent, which would open another connection", async () => {
  const service = await startNamed("10.0.0.1");
  await advance(3_600);
  hanging.add("10.0.0.1");
  const slow = service.call(undefined, CategoryService.method.deleteCategory);
  hanging.delete("10.0.0.1");
  names.pet = ["10.0.0.2"];
  up.add("10.0.0.2");
  await advance(2_200);
  lose(new ConnectError("the operation timed out", Code.DeadlineExceeded));
  expect(await slow).toMatchObject({ code: Code.DeadlineExceeded });
  while (open.includes("10.0.0.1")) await advance(100);
  asked = [];
  await advance(5_000);
  expect(asked).toEqual([]);
});

test("one that was silent and has gone is asked nothing any more", async () => {
  const service = await startNamed("10.0.0.1", "10.0.0.2");
  hanging.add("10.0.0.1");
  const both = [service.call(10_000)];
  await nextTurn();
  both.push(service.call(10_000));
  await advance(1_000);
  expect(await Promise.all(both)).toEqual(["answered", "answered"]);
  expect(
    sleepers.some(({ until }) => until <= now + 500),
    "it is asked again and again",
  ).toBe(true);
  names.pet = ["10.0.0.2"];
  await advance(10_000);
  expect([sleepers.length, open]).toEqual([1, ["10.0.0.2"]]);
});

test("a name that can't be looked up keeps what it stood for, and the log says so once", async () => {
  const service = await startNamed("10.0.0.1");
  names = {};
  await advance(20_000);
  expect([await calls(service, 2), places(service)]).toEqual(["10.0.0.1 10.0.0.1", ["10.0.0.1"]]);
  expect(logged).toEqual([
    `a service's addresses have changed {"host":"pet","addresses":["10.0.0.1"]}`,
    `a service's name can't be looked up: what it was stays in use {"host":"pet","problem":"getaddrinfo ENOTFOUND pet"}`,
  ]);
});

test("a name that nobody knows at the start is one replica that does not serve, until it is known", async () => {
  const service = start("http://pet:8080");
  await advance(100);
  const early = service.call();
  await advance(100);
  expect(await early).toMatchObject({ code: Code.Unavailable });
  expect(places(service)).toEqual(["http://pet:8080"]);
  names.pet = ["10.0.0.1", "10.0.0.2"];
  up = new Set(names.pet);
  await advance(5_000);
  expect((await calls(service, 2)).split(" ").sort()).toEqual(names.pet);
});

test("a call that finds nobody has the name looked up again, and goes to those that have come", async () => {
  const service = await startNamed("10.0.0.1", "10.0.0.2");
  await advance(3_900, 10); // it was just looked up
  expect(lookups.length).toBe(2);
  names.pet = ["10.0.0.3"];
  up = new Set(names.pet);
  const write = service.call(undefined, CategoryService.method.deleteCategory);
  await advance(110, 10);
  expect([await write, called.at(-1)]).toEqual(["answered", "10.0.0.3"]);
  names.pet = ["10.0.0.4"];
  up = new Set(names.pet);
  const stream = service.watch();
  await advance(110, 10);
  expect(await Array.fromAsync((await stream).message)).toEqual(["10.0.0.4"]);
});

test("a call that finds only silent ones has the name looked up as well", async () => {
  const service = await startNamed("10.0.0.1", "10.0.0.2");
  for (const address of names.pet as string[]) hanging.add(address);
  const silent = [service.call(10_000)];
  await nextTurn();
  silent.push(service.call(10_000));
  await advance(600);
  const messages = (await Promise.all(silent)).map((error) => ConnectError.from(error).rawMessage);
  expect(messages.sort()).toEqual(["http://pet:8080 at 10.0.0.1 is silent", "http://pet:8080 at 10.0.0.2 is silent"]);
  while (now % 5_000 !== 1_300) await advance(100); // it is not looked up soon
  names.pet = ["10.0.0.3"];
  up.add("10.0.0.3");
  const [read, stream] = [service.call(), service.watch()];
  await advance(110, 10);
  expect(await read).toBe("answered");
  expect(await Array.fromAsync((await stream).message)).toEqual(["10.0.0.3"]);
});

test("a call at whose address another service is now goes to where its own has gone", async () => {
  const service = await startNamed("10.0.0.1");
  await advance(3_900, 10); // it was just looked up
  taken.add("10.0.0.1");
  names.pet = ["10.0.0.2"];
  up.add("10.0.0.2");
  const write = service.call(undefined, CategoryService.method.deleteCategory);
  await advance(110, 10);
  expect([await write, called.at(-1)]).toEqual(["answered", "10.0.0.2"]);
});

test("a name is looked up every five seconds, and for calls that find nobody ten times a second at most", async () => {
  const service = await startNamed("10.0.0.1");
  lookups = [];
  await advance(60_000);
  expect(lookups.length).toBe(12);
  lookups = [];
  up.clear();
  lookupMs = 50;
  const failures: ReturnType<typeof service.call>[] = [];
  for (let i = 0; i < 200; i++) {
    failures.push(service.call(), service.call());
    await advance(20, 10);
  }
  await advance(1_000, 10);
  for (const failure of await Promise.all(failures))
    expect(failure).toMatchObject({ rawMessage: "connection refused" });
  // Every 150 ms of four seconds.
  expect(lookups.length).toBeGreaterThan(20);
  expect(lookups.length).toBeLessThan(30);
  expect(most).toBe(1);
});

test("no call waits for a look-up longer than its own time, and none longer than a second", async () => {
  const service = await startNamed("10.0.0.1");
  up.clear();
  lookupMs = Number.POSITIVE_INFINITY;
  await advance(6_000);
  const over: string[] = [];
  const brief = service.call(300).then(() => over.push("brief"));
  const long = service.call(60_000).then(() => over.push("long"));
  await advance(200);
  expect(over).toEqual([]);
  await advance(100);
  expect(over).toEqual(["brief"]);
  await advance(700);
  expect(over).toEqual(["brief", "long"]);
  await Promise.all([brief, long]);
});

test("what waits for a look-up leaves no timer behind, and ends when all is closed", async () => {
  const service = await startNamed("10.0.0.1");
  await advance(3_900, 10); // it was just looked up
  const timers = sleepers.length;
  up.clear();
  const failure = service.call();
  await advance(600, 10); // the replica, too, is no longer watched
  expect([await failure, sleepers.length]).toEqual([expect.any(ConnectError), timers]);
  lookupMs = Number.POSITIVE_INFINITY;
  const early = service.call();
  await advance(110, 10);
  expect(looking).toBe(1);
  service.close();
  expect(await Promise.race([early, nextTurn()])).toBeInstanceOf(ConnectError);
});

test("after some ten minutes a connection has a successor, which is there before it is used", async () => {
  const service = await startNamed("10.0.0.1");
  await advance(8 * MINUTE, 1_000);
  const [first] = service.replicas();
  hanging.add("10.0.0.1"); // a new connection would be of no use now
  await advance(2.5 * MINUTE, 1_000);
  expect([service.replicas()[0] === first, open]).toEqual([true, ["10.0.0.1"]]);
  hanging.clear();
  streams = 1;
  await advance(5_000);
  expect([service.replicas()[0] === first, open]).toEqual([false, ["10.0.0.1", "10.0.0.1"]]);
  expect(await calls(service, 3)).toBe("10.0.0.1 10.0.0.1 10.0.0.1");
  streams = 0;
  await advance(2_000);
  expect(open).toEqual(["10.0.0.1"]);
});

test("many that are too old are asked side by side", async () => {
  const service = await startNamed(...Array.from({ length: 20 }, (_, n) => `10.0.0.${n}`));
  await advance(9 * MINUTE, 1_000);
  const before = service.replicas();
  checkMs = 1_000;
  await advance(MINUTE + 10_000);
  expect(service.replicas().filter((replica) => before.includes(replica))).toEqual([]);
});

test("streams that stay for days hold four connections at most, and when they have ended one", async () => {
  const service = await startNamed("10.0.0.1");
  streams = 1;
  await advance(60 * MINUTE, 1_000);
  expect(open.length).toBe(4);
  streams = 0;
  await advance(10_000, 1_000);
  expect([open, await service.call()]).toEqual([["10.0.0.1"], "answered"]);
});

test("connections that were opened together do not end together", async () => {
  const chances = [0, 0.25, 0.5, 0.75];
  const random = deps.random;
  let turn = 0;
  deps.random = () => chances[turn++ % 4] as number;
  const addresses = [1, 2, 3, 4].map((n) => `10.0.0.${n}`);
  const service = await startNamed(...addresses);
  const before = service.replicas();
  const ended = new Map<number, number>();
  for (; ended.size < 4; await advance(5_000, 1_000))
    for (const [i, replica] of service.replicas().entries())
      if (replica !== before[i] && !ended.has(i)) ended.set(i, Math.round(now / MINUTE));
  deps.random = random;
  expect([...ended.values()]).toEqual([8, 9, 10, 11]);
});

test("a thousand changes leave nothing behind, and nothing is left when all is closed", async () => {
  const service = await startNamed("10.0.0.0");
  await advance(20_000);
  const timers = sleepers.length;
  for (let n = 1; n <= 1000; n++) {
    names.pet = [`10.0.${n >> 8}.${n & 255}`];
    up = new Set(names.pet);
    await advance(5_000, 1_000);
    expect(await service.call()).toBe("answered");
  }
  expect(open.length).toBeLessThanOrEqual(2);
  await advance(2_000);
  expect([open, sleepers.length]).toEqual([["10.0.3.232"], timers]);
  service.close();
  await nextTurn();
  expect([open, sleepers]).toEqual([[], []]);
});

test.each(["answers", "fails"])(
  "a look-up that %s when all is closed opens nothing, and tells nothing",
  async (how) => {
    const service = await startNamed("10.0.0.1");
    lookupMs = 3_000;
    await advance(6_000);
    expect(looking).toBe(1);
    names = how === "answers" ? { pet: ["10.0.0.2"] } : {};
    logged = [];
    service.close();
    await advance(5_000);
    expect([looking, open, logged]).toEqual([0, [], []]);
  },
);
