/**
 * `node for-tests.js {"seed":1}` runs the petstore that somebody's tests start (packages/testing): all of it in this process and
 * in memory, with records that can be reset and a clock that can be moved on, by the admin port. It ends with the process that
 * started it.
 */
import { randomBytes } from "node:crypto";
import { createPetstore } from "@petstore/client";
import { createMovableTime, MAX_SEED, seededRandom } from "@petstore/runtime/clock";
import { ConfigError, duration, instant } from "@petstore/runtime/environment";
import { type Running, runProcess } from "@petstore/runtime/lifecycle";
import { copyData, emptyData, type MemoryData, openMemory } from "@petstore/store/memory";
import type { Fault } from "@petstore/testing";
import { fill } from "../demo/fill.ts";
import { MAX_PETS, planShop } from "../demo/shop.ts";
import { gatewayConfig } from "../gateway/config.ts";
import { createFaults } from "../gateway/faults.ts";
import { openGateway } from "../gateway/serve.ts";
import { publicServices } from "../gateway/services.ts";
import { membersOf, parsed, readAs } from "../processes/admin/body.ts";
import { type AdminAnswer, Unusable } from "../processes/admin.ts";
import { openCommon } from "../processes/common.ts";
import { type ServiceName, serviceNames } from "../processes/names.ts";
import { serviceConfig } from "../services/config.ts";
import { type OpenService, openService, pathsInMemory } from "../services/open.ts";

interface Options {
  readonly seed?: number;
  readonly pets?: number;
  /** In milliseconds since 1970. */
  readonly now?: number | undefined;
  readonly faults?: readonly Fault[] | undefined;
}

type Services = ReadonlyMap<ServiceName, OpenService>;
type Data = ReadonlyMap<ServiceName, MemoryData>;

/** Records and the services that keep them. A reset begins another world. */
interface World extends AsyncDisposable {
  readonly services: Services;
}

const DONE: AdminAnswer = { status: 204 };
/** The contract has no later times. */
const LATEST = Date.parse("9999-01-01");
/** Work that makes work comes to its end in two or three rounds. */
const MAX_ROUNDS = 20;

async function openForTests(options: Options, given: NodeJS.ProcessEnv, stack: AsyncDisposableStack): Promise<Running> {
  // Nobody has to know the secret, for the services have no ports.
  const secret = randomBytes(32).toString("hex");
  const environment = { PORT: "0", ADMIN_PORT: "0", LAME_DUCK: "0s", INTERNAL_SECRET: secret, ...given };
  const config = gatewayConfig(environment);
  const time = createMovableTime(options.now);
  // Whoever tests a program with variables for its own traces has not asked for those of the petstore.
  const common = await openCommon({ ...config, instance: "petstore", traces: undefined }, stack, time);
  const { log, admin } = common;

  async function openWorld(data: Data): Promise<World> {
    const world = new AsyncDisposableStack();
    const services = new Map<ServiceName, OpenService>();
    // Only to each other: what an old world is still doing must not reach the next one.
    const none = () => {};
    const parts = { ...common, pathTo: pathsInMemory({ services }, common), waitsFor: none, failpoint: none };
    const open = async (name: ServiceName) => {
      const store = async () => openMemory({ data: data.get(name) ?? emptyData(), clock: time.clock });
      services.set(name, await openService(serviceConfig(environment, name), { ...parts, openStore: store }, world));
    };
    await Promise.all(serviceNames.map(open));
    for (const { start } of services.values()) start();
    world.defer(() => {
      for (const { dispatcher } of services.values()) dispatcher.drain();
    });
    return { services, [Symbol.asyncDispose]: () => world.disposeAsync() };
  }

  /** What each seed begins with, made once. */
  let known: { readonly seed: number; readonly data: Data } | undefined;
  async function begin(seed: number): Promise<World> {
    const fresh = new Map(serviceNames.map((name) => [name, emptyData()]));
    if (!options.pets) return openWorld(fresh);
    if (known?.seed !== seed) {
      await using world = await openWorld(fresh);
      await fillShop(world.services, seed, options.pets);
      await finishWork(world.services);
      known = { seed, data: copies(fresh) };
    }
    return openWorld(copies(known.data));
  }

  async function fillShop(services: Services, seed: number, pets: number): Promise<void> {
    const serviceOf = new Map(publicServices.map(({ name, desc }) => [desc.typeName, name]));
    const to = pathsInMemory({ services }, common);
    const pathOf = (typeName: string) => to(serviceOf.get(typeName) as ServiceName);
    const transport: Parameters<typeof createPetstore>[0] = {
      transport: {
        unary: (method, ...call) => pathOf(method.parent.typeName).unary(method, ...call),
        stream: (method, ...call) => pathOf(method.parent.typeName).stream(method, ...call),
      },
    };
    const silent = { step() {}, [Symbol.dispose]() {} };
    const { signal } = new AbortController();
    await fill(createPetstore(transport), { planned: planShop(seed, pets), signal, bar: () => silent });
  }

  let seed = options.seed ?? 1;
  const faults = createFaults(config, { ...time, random: seededRandom(seed) });
  faults.set(options.faults ?? []);
  let world = await begin(seed);
  stack.defer(() => world[Symbol.asyncDispose]());
  const present = {
    get services() {
      return world.services;
    },
  };
  const url = await openGateway(config, { ...common, faults, pathTo: pathsInMemory(present, common) }, stack);

  admin.routes.set("POST /reset", async (body) => {
    const { seed: next = seed } = membersOf(body, { seed: "number" });
    if (!Number.isInteger(next) || next < 0 || next > MAX_SEED)
      throw new Unusable(`seed must be a whole number from 0 to ${MAX_SEED}.`);
    const old = world;
    world = await begin(next);
    seed = next;
    faults.restart(seededRandom(seed));
    await old[Symbol.asyncDispose]();
    return DONE;
  });
  admin.routes.set("POST /clock", async (body) => {
    const { advance, now } = membersOf(body, { advance: "string", now: "string" });
    if ((advance === undefined) === (now === undefined))
      throw new Unusable('Say {"advance": "24h"} or {"now": "2030-01-01"}.');
    const ms =
      now === undefined
        ? readAs(duration("0ms", "100000d"), "advance", advance)
        : readAs(instant, "now", now) - time.clock();
    if (ms < 0) throw new Unusable(`The clock can only be moved on: it is ${new Date(time.clock()).toISOString()}.`);
    if (time.clock() + ms > LATEST) throw new Unusable("The clock can't be moved beyond the year 9998.");
    time.advance(ms);
    await finishWork(world.services);
    return DONE;
  });
  admin.routes.set("PUT /faults", (body) => {
    faults.set(parsed(body));
    return DONE;
  });
  return { log, url, adminUrl: admin.url };
}

/** Does all background work that is due. */
async function finishWork(services: Services): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const done = await Promise.all([...services.values()].map(({ work }) => work()));
    if (done.every((count) => count === 0)) return;
  }
}

const copies = (data: Data): Data => new Map([...data].map(([name, each]) => [name, copyData(each)]));

/** The command line, which is JSON. Throws `ConfigError`. */
function optionsIn(text = "{}"): Options {
  const { seed = 1, pets = 0, now, faults }: Options = JSON.parse(text);
  const isWhole = (value: number, max: number) => Number.isInteger(value) && value >= 0 && value <= max;
  const problems = [
    isWhole(seed, MAX_SEED) ? [] : `The seed must be a whole number from 0 to ${MAX_SEED}, not ${seed}.`,
    isWhole(pets, MAX_PETS) ? [] : `There can be 0 to ${MAX_PETS} pets, not ${pets}.`,
    now === undefined || isWhole(now, LATEST) ? [] : "The clock can begin in the years from 1970 to 9998.",
  ].flat();
  if (problems.length > 0) throw new ConfigError(problems);
  return { seed, pets, now, faults };
}

await runProcess(async (stack) => openForTests(optionsIn(process.argv[2]), process.env, stack), process.env);
