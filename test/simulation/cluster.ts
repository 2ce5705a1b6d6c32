/**
 * The four services in one process, on disks in memory, connected as in production except for the network. Every call, every
 * disk access and every failpoint takes a turn. At each turn a process may die, a call may get lost on the way there or back
 * or arrive twice, and a stream may end.
 */
import {
  create,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
} from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { SECRET_HEADER } from "@petstore/rpc/call";
import { pipeline } from "@petstore/rpc/client/pipeline";
import { createDispatcher, type Dispatcher } from "@petstore/rpc/server/dispatcher";
import { onAbort } from "@petstore/rpc/server/until";
import { pino } from "pino";
import { errors } from "#errors";
import { CategoryInternalService } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { InventoryInternalService } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderInternalService } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { isReplayable } from "../../packages/rpc/client/retry.ts";
import { type MemoryData, openMemory } from "../../packages/store/memory/memory.ts";
import type { ServiceName } from "../../processes/names.ts";
import { createCategoryService } from "../../services/category/service.ts";
import { createInventoryService } from "../../services/inventory/service.ts";
import { createOrderService } from "../../services/order/service.ts";
import { createPetService } from "../../services/pet/service.ts";
import type { Deps } from "../../services/resource/deps.ts";
import type { ServiceModule } from "../../services/resource/module.ts";
import { RETENTION } from "../../services/resource/retention.ts";
import { storeFailureOf } from "../../services/resource/store-failure.ts";
import { createDisk, inSteps, type Stored } from "./disk.ts";
import { type FaultInjector, noFaults } from "./fault-injector.ts";
import { createScheduler, type Owner } from "./scheduler.ts";

/**
 * Called after every stored write, before anything else happens. It must not throw: the petstore would treat that as a fault.
 */
export type OnlineChecker = (collection: string, after: Stored, before: Stored | undefined) => void;

interface Caller extends Owner {
  readonly name: ServiceName | "client";
}
interface Process extends Caller {
  readonly died: PromiseWithResolvers<never>;
  module?: ServiceModule;
  dispatcher?: Dispatcher;
}

type Create = (deps: Deps, to: (peer: ServiceName) => Transport) => Promise<ServiceModule>;
const creators: Record<ServiceName, Create> = {
  category: (deps, to) => createCategoryService(deps, { pets: createClient(PetInternalService, to("pet")) }),
  pet: (deps, to) =>
    createPetService(deps, {
      inventory: createClient(InventoryInternalService, to("inventory")),
      categories: createClient(CategoryInternalService, to("category")),
    }),
  inventory: (deps, to) =>
    createInventoryService(deps, {
      pets: createClient(PetInternalService, to("pet")),
      orders: createClient(OrderInternalService, to("order")),
    }),
  order: (deps, to) => createOrderService(deps, { inventory: createClient(InventoryInternalService, to("inventory")) }),
};
export const serviceNames = Object.keys(creators) as readonly ServiceName[];

const secret = "a secret for tests only";
const log = pino({ level: "silent" });
/** Longer than any worker waits before it takes work for abandoned. In milliseconds. */
const OLD_MS = 60_000;
const ROUNDS = 50;

export async function createCluster(checker: OnlineChecker = () => {}, retention = RETENTION) {
  let faults: FaultInjector = noFaults;
  let writes = 0;
  const turns = createScheduler((waiting) => faults.pick(waiting));
  const { clock } = turns;
  const outside: Caller = { name: "client", dead: false };
  const disks = new Map<ServiceName, MemoryData>();
  for (const name of serviceNames) {
    const onWrite: OnlineChecker = (...write) => {
      writes++;
      checker(...write);
    };
    disks.set(name, createDisk(onWrite));
  }
  const processes = new Map<ServiceName, Process>();
  const diskOf = (name: ServiceName) => disks.get(name) as MemoryData;
  const time = (owner: Owner) => ({
    clock,
    random: () => faults.random(),
    sleep: (ms: number, signal?: AbortSignal) => turns.sleep(ms, owner, signal),
  });

  /**
   * Like SIGKILL: the process does nothing more, and its callers find it unreachable. Some turns later a new one starts on its
   * disk.
   */
  function kill(name: ServiceName): void {
    const process = processes.get(name);
    if (!process) return;
    processes.delete(name);
    process.dead = true;
    process.died.reject(unreachable());
    void turns.wait(outside).then(() => start(name));
  }

  async function start(name: ServiceName): Promise<void> {
    const process: Process = { name, dead: false, died: Promise.withResolvers() };
    process.died.promise.catch(() => {});
    const step = (label: string): Promise<void> => {
      if (!process.dead && faults.dies(name, label)) kill(name);
      return turns.wait(process);
    };
    const delay = async () => {
      for (let left = faults.delay(); left > 0; left--) await turns.wait(process);
    };
    const store = inSteps(openMemory({ data: diskOf(name), clock }), step, delay);
    const deps: Deps = { ...time(process), store, log, retention, failpoint: (name) => step(`point ${name}`) };
    process.module = await creators[name](deps, (peer) => transport(process, peer));
    process.dispatcher = createDispatcher(process.module.implementations, { deps, secret, errors, storeFailureOf });
    processes.set(name, process);
  }

  /** Delivers a call to a service once. */
  async function serve(to: ServiceName, method: DescMethodUnary, message: Message, headers: Headers, ms?: number) {
    const process = processes.get(to);
    if (!process?.dispatcher) throw unreachable();
    const answer = process.dispatcher.invoke(method, message, { headers, timeoutMs: ms });
    return Promise.race([answer, process.died.promise]);
  }

  /** Delivers a stream. It ends when a message is not delivered normally, and when the process dies. */
  async function* tell(
    from: Caller,
    to: ServiceName,
    method: DescMethodServerStreaming,
    message: Message,
    left: AbortSignal,
  ) {
    const process = processes.get(to);
    if (!process?.dispatcher) throw unreachable();
    const gone = new AbortController();
    const signal = AbortSignal.any([left, gone.signal]);
    const headers = new Headers({ [SECRET_HEADER]: secret });
    const whenGone = (end: () => void) => onAbort(signal, end);
    const incoming = { headers, timeoutMs: undefined, whenGone, responseHeaders: new Headers() };
    const told = process.dispatcher.stream(method, message, incoming)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { done, value } = await Promise.race([told.next(), process.died.promise]);
        await turns.wait(from);
        if (done) return;
        if (faults.deliver({ from: from.name, replayable: true }) !== "once") throw unreachable();
        yield value;
      }
    } finally {
      gone.abort();
    }
  }

  const wire = (from: Caller, to: ServiceName): Transport => ({
    async stream(method, signal = new AbortController().signal, _timeoutMs, _init, messages) {
      const [input] = await Array.fromAsync(messages);
      const [header, trailer] = [new Headers(), new Headers()];
      const request = create(method.input, input as never);
      const message = tell(from, to, method as never, request, signal) as AsyncIterable<never>;
      return { stream: true, service: method.parent, method, header, trailer, message };
    },
    async unary(method, _signal, timeoutMs, init, input) {
      const headers = new Headers(init);
      headers.set(SECRET_HEADER, secret);
      const message = create(method.input, input);
      const deliver = () => serve(to, method, message, headers, timeoutMs);
      const fate = faults.deliver({ from: from.name, replayable: isReplayable(method, message) });
      if (fate === "twice" || fate === "late")
        void turns
          .sleep(faults.lateness(), outside)
          .then(deliver)
          .catch(() => {});
      await turns.wait(from);
      if (fate === "lost" || fate === "late") throw unreachable();
      const call = deliver();
      if (fate === "unanswered") {
        call.catch(() => {});
        await turns.wait(from);
        throw unreachable();
      }
      const answer = await call;
      await turns.wait(from);
      const trailer = new Headers();
      const { headers: header } = answer;
      return { stream: false, service: method.parent, method, header, trailer, message: answer.message as never };
    },
  });

  const transport = (from: Caller, to: ServiceName) => pipeline(wire(from, to), { ...time(from), errors });

  async function runWorkers(name: ServiceName): Promise<void> {
    const process = processes.get(name);
    for (const worker of process?.module?.workers ?? [])
      await Promise.race([worker.run(100), process?.died.promise]).catch(() => {});
  }

  for (const name of serviceNames) await start(name);
  return {
    advance: turns.advance,
    /** Resolves when it is the test's turn. */
    turn: () => turns.wait(outside),
    /** A client of a service, as the gateway is one. */
    client: <S extends DescService>(desc: S): Client<S> => createClient(desc, transport(outside, serviceOf(desc))),
    injectFaults(next: FaultInjector): void {
      faults = next;
    },
    kill,
    /** Like SIGTERM, which here only ends streams. */
    drain: (name: ServiceName): void => processes.get(name)?.dispatcher?.drain(),
    /** The number of documents in the collections of that name. */
    stored: (collection: string): number =>
      [...disks.values()].reduce((all, { collections }) => all + (collections.get(collection)?.size ?? 0), 0),
    /** Runs the service's workers once. */
    runWorkers,
    /** Runs the cluster until the work is done. */
    until: turns.until,
    /** Runs the cluster until nothing is left to do. */
    untilIdle: turns.untilIdle,
    /** Ends all faults, and runs all workers until they find nothing to do. Throws if that never happens. */
    async settle(): Promise<void> {
      faults = noFaults;
      await turns.untilIdle();
      for (let round = 0; round < ROUNDS; round++) {
        const before = writes;
        turns.advance(OLD_MS);
        for (const name of serviceNames) await turns.until(runWorkers(name));
        await turns.untilIdle();
        if (writes === before) return;
      }
      throw new Error("The workers find something to do for ever.");
    },
  };
}
export type Cluster = Awaited<ReturnType<typeof createCluster>>;

const unreachable = () => new ConnectError("nobody answers", Code.Unavailable);

function serviceOf({ typeName }: DescService): ServiceName {
  const name = serviceNames.find((name) => typeName.toLowerCase().endsWith(`.${name}service`));
  if (!name) throw new Error(`${typeName} is no public service.`);
  return name;
}
