/**
 * What an operation costs: the accesses to stores and the calls between services that it takes, and which of them its answer
 * waits for. To find out, the operation runs again for each of them, which then never ends: was it answered all the same?
 */
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { pipeline } from "@petstore/rpc/client/layers";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import { createDispatcher, type Dispatcher } from "@petstore/rpc/server/dispatcher";
import type { Collection, Doc, Indexes, Schema, Store } from "@petstore/store/port";
import { pino } from "pino";
import { errors } from "#errors";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { type ServiceName, serviceNames } from "../../processes/names.ts";
import { createService } from "../../services/create.ts";
import { storeFailureOf } from "../../services/observed-store.ts";
import type { Deps } from "../../services/records/module.ts";
import { RETENTION } from "../../services/records/retention.ts";
import { createScheduler } from "../simulation/scheduler.ts";
import type { Operation } from "../workload/operations.ts";
import { type Outcome, perform } from "../workload/perform.ts";

/** "id": a new number. "read": an access that changes nothing. "call": from one service to another. */
type Kind = "write" | "id" | "read" | "call";

/** How many the answer waits for, and how many go on behind it. */
export interface Count {
  readonly awaited: number;
  readonly behind: number;
}

export interface Costs extends Readonly<Record<Kind, Count>> {
  /** The awaited writes that come one after the other: of those that are made at the same time one counts. */
  readonly inTurn: number;
  readonly outcome: Outcome;
}

export interface Performed {
  /** What comes before it. */
  readonly before: readonly Operation[];
  readonly act: Operation;
}

export async function costsOf(performed: Performed): Promise<Costs> {
  const { outcome, taken, inTurn } = await run(performed);
  const answered: (readonly [Kind, boolean])[] = [];
  for (const [i, kind] of taken.entries()) answered.push([kind, (await run(performed, i)).outcome?.is === outcome?.is]);
  const count = (kind: Kind): Count => {
    const behind = answered.filter(([one, isAnswered]) => one === kind && isAnswered).length;
    return { awaited: taken.filter((one) => one === kind).length - behind, behind };
  };
  if (!outcome) throw new Error(`"${performed.act.do}" was not answered, though nothing stalled.`);
  return { outcome, inTurn, write: count("write"), id: count("id"), read: count("read"), call: count("call") };
}

/** Without an outcome if the operation was not answered. */
async function run({ before, act }: Performed, stalled?: number) {
  const petstore = await openPetstore();
  for (const operation of before) await petstore.until(perform(petstore, operation));
  await petstore.untilIdle();
  const taken = petstore.count(stalled);
  const begun = petstore.clock();
  const outcome = await petstore.until(perform(petstore, act)).catch(() => undefined);
  const inTurn = petstore.clock() - begun;
  await petstore.untilIdle();
  return { outcome, taken, inTurn };
}

/** The services in one process, on stores in memory. A write takes a millisecond of the clock, and all else takes none. */
async function openPetstore() {
  const turns = createScheduler(() => 0);
  const { clock, until, untilIdle } = turns;
  const petstore = { dead: false };
  const time = {
    clock,
    random: () => 0.5,
    sleep: (ms: number, signal?: AbortSignal) => turns.sleep(ms, petstore, signal),
  };
  const dispatchers = new Map<ServiceName, Dispatcher>();
  let taken: Kind[] | undefined;
  let stalled: number | undefined;

  async function take(kind: Kind): Promise<void> {
    if (taken && taken.push(kind) - 1 === stalled) await new Promise(() => {});
    if (kind === "write") await time.sleep(1);
  }

  const transportTo = (name: ServiceName, counts: boolean): Transport => {
    const inner = inProcessTransport(() => dispatchers.get(name) as Dispatcher);
    const counted: Transport = {
      ...inner,
      async unary(...call) {
        if (counts) await take("call");
        return inner.unary(...call);
      },
    };
    return pipeline(counted, { ...time, errors });
  };

  for (const name of serviceNames) {
    const store = counting(openMemory({ clock }), take);
    const deps: Deps = { ...time, store, log: pino({ level: "silent" }), retention: RETENTION, failpoint: () => {} };
    const { implementations } = await createService(name, deps, (peer) => transportTo(peer, true));
    dispatchers.set(name, createDispatcher(implementations, { deps, errors, storeFailureOf }));
  }
  return {
    clock,
    until,
    untilIdle,
    /** From now on notes what is taken, the `nth` of which never ends. */
    count(nth: number | undefined): readonly Kind[] {
      stalled = nth;
      taken = [];
      return taken;
    },
    client<S extends DescService>(desc: S): Client<S> {
      const name = serviceNames.find((name) => desc.typeName.toLowerCase().endsWith(`.${name}service`)) as ServiceName;
      return createClient(desc, transportTo(name, false));
    },
  };
}

function counting(store: Store, take: (kind: Kind) => Promise<void>): Store {
  const taken = async <R>(kind: Kind, access: Promise<R>): Promise<R> => {
    const result = await access;
    await take(kind);
    return result;
  };
  return {
    ...store,
    nextId: (...args) => taken("id", store.nextId(...args)),
    async collection<T extends Doc, const I extends Indexes<T>, V>(
      schema: Schema<T, I, V>,
    ): Promise<Collection<T, I, V>> {
      const inner = await store.collection(schema);
      return {
        ...inner,
        get: (...args) => taken("read", inner.get(...args)),
        getMany: (...args) => taken("read", inner.getMany(...args)),
        list: (...args) => taken("read", inner.list(...args)),
        remove: (...args) => taken("write", inner.remove(...args)),
        async update(id, decide, options) {
          let kind: Kind = "read";
          const noting: typeof decide = (doc, rev) => {
            const decision = decide(doc, rev);
            kind = decision.action === "put" ? "write" : "read";
            return decision;
          };
          try {
            return await inner.update(id, noting, options);
          } finally {
            await take(kind);
          }
        },
      };
    },
  };
}
