/**
 * The four services in one process, on disks in memory, connected as in production except for the network. Every call, every
 * disk access and every failpoint takes a turn. At each turn a process may die, a call may get lost on the way there or back
 * or arrive twice, and a stream may end.
 */
import { create, type DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { pipeline } from "@petstore/rpc/client/pipeline";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import { createDispatcher, type Dispatcher } from "@petstore/rpc/server/dispatcher";
import { pino } from "pino";
import { errors } from "#errors";
import { isReplayable } from "../../packages/rpc/client/retry.ts";
import { type MemoryData, openMemory } from "../../packages/store/memory/memory.ts";
import { isServiceName, processNames, type ServiceName } from "../../processes/names.ts";
import { createService } from "../../services/create.ts";
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

export const serviceNames = processNames.filter(isServiceName);

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
    process.module = await createService(name, deps, (peer) => transport(process, peer));
    process.dispatcher = createDispatcher(process.module.implementations, { deps, errors, storeFailureOf });
    processes.set(name, process);
  }

  /** The process that serves `to` now, and a transport to it. */
  function reach(to: ServiceName) {
    const process = processes.get(to);
    if (!process?.dispatcher) throw unreachable();
    const { dispatcher, died } = process;
    return { ...inProcessTransport(() => dispatcher), died: died.promise };
  }

  /** Delivers the messages of a stream. It ends when one is not delivered normally, and when the process dies. */
  async function* tell<M>(from: Caller, messages: AsyncIterable<M>, died: Promise<never>, leave: () => void) {
    const told = messages[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { done, value } = await Promise.race([told.next(), died]);
        await turns.wait(from);
        if (done) return;
        if (faults.deliver({ from: from.name, replayable: true }) !== "once") throw unreachable();
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
      return { ...answer, message: tell(from, answer.message, died, () => gone.abort()) };
    },
    async unary(method, _signal, timeoutMs, init, input) {
      const message = create(method.input, input);
      const deliver = async () => {
        const { unary, died } = reach(to);
        return Promise.race([unary(method, undefined, timeoutMs, init, message), died]);
      };
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
      return answer;
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
