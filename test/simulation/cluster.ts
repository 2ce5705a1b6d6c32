/**
 * The four services in one process, on disks in memory, connected as in production except for the network. Every call, every
 * disk access and every failpoint takes a turn. At each turn a process may die, a call may get lost on the way there or back
 * or arrive twice, and a stream may end.
 */
import { create, type DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { pipeline } from "@petstore/rpc/client/layers";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import { createDispatcher, type Dispatcher } from "@petstore/rpc/server/dispatcher";
import type { Store } from "@petstore/store/port";
import { pino } from "pino";
import { errors } from "#errors";
import { isReplayable } from "../../packages/rpc/client/failed-call.ts";
import { copyData, type MemoryData, openMemory } from "../../packages/store/memory/memory.ts";
import { type ServiceName, serviceNames } from "../../processes/names.ts";
import { createService } from "../../services/create.ts";
import { storeFailureOf } from "../../services/observed-store.ts";
import type { Deps, ServiceModule } from "../../services/records/module.ts";
import { RETENTION, type Retention } from "../../services/records/retention.ts";
import { createDisk, fill, idsAhead, inSteps, type Stored } from "./disk.ts";
import { type FaultInjector, noFaults, type Sent } from "./fault-injector.ts";
import { createScheduler, type Owner } from "./scheduler.ts";

/**
 * Called after every stored write, before anything else happens. It must not throw: the petstore would treat that as a fault.
 */
export type OnlineChecker = (collection: string, after: Stored, before: Stored | undefined) => void;

interface Caller extends Owner {
  readonly name: ServiceName | "client";
}
interface Process extends Caller {
  readonly name: ServiceName;
  readonly died: PromiseWithResolvers<never>;
  /** Until when its workers rest, by their names. */
  readonly restsUntil: Map<string, number>;
  module?: ServiceModule;
  dispatcher?: Dispatcher;
}

const log = pino({ level: "silent" });
/** Longer than any worker waits before it takes work for abandoned. In milliseconds. */
const OLD_MS = 60_000;
const ROUNDS = 50;

export interface ClusterOptions {
  readonly retention?: Retention;
  /** Processes of each service. They share its data. */
  readonly replicas?: number;
}

export async function createCluster(
  checker: OnlineChecker = () => {},
  { retention = RETENTION, replicas = 1 }: ClusterOptions = {},
) {
  let faults: FaultInjector = noFaults;
  let writes = 0;
  const turns = createScheduler((waiting) => faults.pick(waiting));
  const begin = turns.clock();
  /** How far the clock of a service is ahead. */
  const lead = new Map<Caller["name"], number>();
  const clockOf = (name: Caller["name"]) => () => turns.clock() + (lead.get(name) ?? 0);
  const outside: Caller = { name: "client", dead: false };
  const disks = new Map<ServiceName, MemoryData>();
  const stores = new Map<ServiceName, Store>();
  for (const name of serviceNames) {
    const onWrite: OnlineChecker = (...write) => {
      writes++;
      checker(...write);
    };
    disks.set(name, createDisk(onWrite));
    stores.set(name, openMemory({ data: disks.get(name) as MemoryData, clock: clockOf(name) }));
  }
  const processes = new Map<ServiceName, readonly Process[]>(serviceNames.map((name) => [name, []]));
  const processesOf = (name: ServiceName) => processes.get(name) ?? [];
  const time = (owner: Caller) => ({
    clock: clockOf(owner.name),
    random: () => faults.random(),
    sleep: (ms: number, signal?: AbortSignal) => turns.sleep(ms, owner, signal),
  });

  /**
   * Like SIGKILL: the process does nothing more, and its callers find it unreachable. Some turns later a new one starts on its
   * disk.
   */
  function killOne(process: Process): void {
    const { name } = process;
    processes.set(
      name,
      processesOf(name).filter((other) => other !== process),
    );
    process.dead = true;
    process.died.reject(unreachable());
    void turns.wait(outside).then(() => start(name));
  }
  const kill = (name: ServiceName): void => processesOf(name).forEach(killOne);

  async function start(name: ServiceName): Promise<void> {
    const process: Process = { name, dead: false, died: Promise.withResolvers(), restsUntil: new Map() };
    process.died.promise.catch(() => {});
    const step = (label: string): Promise<void> => {
      if (!process.dead && faults.dies(name, label)) killOne(process);
      return turns.wait(process);
    };
    const delay = () => turns.wait(process, faults.delay());
    const store = idsAhead(inSteps(stores.get(name) as Store, step, delay), () => faults.ahead());
    const deps: Deps = { ...time(process), store, log, retention, failpoint: (name) => step(`point ${name}`) };
    process.module = await createService(name, deps, (peer) => transport(process, peer));
    process.dispatcher = createDispatcher(process.module.implementations, { deps, errors, storeFailureOf });
    processes.set(name, [...processesOf(name), process]);
  }

  /** A process that serves `to` now, and a transport to it. */
  function reach(to: ServiceName) {
    const serving = processesOf(to);
    const process = serving[serving.length > 1 ? faults.pick(serving.length) : 0];
    if (!process?.dispatcher) throw unreachable();
    const { dispatcher, died } = process;
    return { ...inProcessTransport(() => dispatcher), died: died.promise };
  }

  /** Delivers the messages of a stream. It ends when one is not delivered normally, and when the process dies. */
  async function* tell<M>(
    from: Caller,
    sent: Sent,
    messages: AsyncIterable<M>,
    died: Promise<never>,
    leave: () => void,
  ) {
    const told = messages[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { done, value } = await Promise.race([told.next(), died]);
        await turns.wait(from);
        if (done) return;
        if (faults.deliver(sent) !== "once") throw unreachable();
        yield value;
      }
    } finally {
      leave();
    }
  }

  const wire = (from: Caller, to: ServiceName): Transport => ({
    async stream(method, signal, ...call) {
      const { stream, died } = reach(to);
      const gone = new AbortController();
      const answer = await stream(method, AbortSignal.any([...(signal ? [signal] : []), gone.signal]), ...call);
      const sent = { from: from.name, to, rpc: method.name, replayable: true };
      return { ...answer, message: tell(from, sent, answer.message, died, () => gone.abort()) };
    },
    async unary(method, _signal, timeoutMs, init, input) {
      const message = create(method.input, input);
      const deliver = async () => {
        const { unary, died } = reach(to);
        return Promise.race([unary(method, undefined, timeoutMs, init, message), died]);
      };
      const fate = faults.deliver({ from: from.name, to, rpc: method.name, replayable: isReplayable(method, message) });
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
      return answer;
    },
  });

  const transport = (from: Caller, to: ServiceName) => pipeline(wire(from, to), { ...time(from), errors });

  async function runWorkers(name: ServiceName, only?: string): Promise<void> {
    for (const { module, died, restsUntil } of processesOf(name))
      for (const worker of module?.workers ?? []) {
        if (only !== undefined && worker.name !== only) continue;
        // What rests for long looks for what has expired: sooner, and before anything can be so old, it would look in vain.
        const pause = Math.min(worker.everyMs, retention.tombstones.ageMs);
        if (pause > OLD_MS && turns.clock() < (restsUntil.get(worker.name) ?? begin + pause)) continue;
        restsUntil.set(worker.name, turns.clock() + pause);
        await Promise.race([worker.run(100), died.promise]).catch(() => {});
      }
  }

  for (const name of serviceNames) for (let replica = 0; replica < replicas; replica++) await start(name);
  return {
    clock: turns.clock,
    advance: turns.advance,
    /** The clock of a service goes ahead of the others, as if their machines had slept for so long. */
    goAhead(name: ServiceName, ms: number): void {
      lead.set(name, (lead.get(name) ?? 0) + ms);
    },
    /** Resolves when it is the test's turn, for so many times. */
    turn: (times = 1) => turns.wait(outside, times),
    /** A client of a service, as the gateway is one. */
    client: <S extends DescService>(desc: S): Client<S> => createClient(desc, transport(outside, serviceOf(desc))),
    injectFaults(next: FaultInjector): void {
      faults = next;
    },
    kill,
    /** Copies the data of a service. Returns a function that restores it: then the service starts with what it had. */
    backup(name: ServiceName): () => void {
      const copy = copyData(disks.get(name) as MemoryData);
      return () => {
        fill(disks.get(name) as MemoryData, copy);
        kill(name);
      };
    },
    /** Like SIGTERM, which here only ends streams. */
    drain: (name: ServiceName): void => processesOf(name).forEach(({ dispatcher }) => void dispatcher?.drain()),
    /** The number of documents in the collections of that name. */
    stored: (collection: string): number =>
      [...disks.values()].reduce((all, { collections }) => all + (collections.get(collection)?.size ?? 0), 0),
    /** Runs the service's workers once, or one of them. */
    runWorkers,
    /** Runs the cluster until the work is done. */
    until: turns.until,
    /** Runs the cluster until nothing is left to do. */
    untilIdle: turns.untilIdle,
    /** Ends all faults, and runs all workers until they find nothing to do. Throws if that never happens. */
    async settle(): Promise<void> {
      faults = noFaults;
      await turns.untilIdle();
      let quiet = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const before = writes;
        turns.advance(OLD_MS);
        for (const name of serviceNames) await turns.until(runWorkers(name));
        await turns.untilIdle();
        quiet = writes === before ? quiet + 1 : 0;
        // Reservations are seen in one round and settled in the next.
        if (quiet === 2) return;
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
