/** What random histories have in common: how they are drawn, and the petstore that they happen in. */
import fc from "fast-check";
import { serviceNames } from "../../../processes/names.ts";
import { createOnlineChecker } from "../../checker/online-checker.ts";
import { createClient, nobodyKnown } from "../../workload/client.ts";
import type { Operation } from "../../workload/operations.ts";
import { type Outcome, perform } from "../../workload/perform.ts";
import { type ClusterOptions, createCluster } from "../cluster.ts";
import type { Stored } from "../disk.ts";
import type { Fault, FaultRates, Strikes } from "../fault-injector.ts";
import { createNotices, type Situation } from "./situations.ts";

/** All that decides what happens. */
export interface History {
  /** The operations of each client, day by day. */
  readonly days: readonly (readonly (readonly Operation[])[])[];
  readonly seed: number;
  readonly rates: FaultRates;
  /** Processes of each service. */
  readonly replicas: number;
  /** The faults that do not strike, counted from 0 in the order in which they are due. None unless a failure is shrunk. */
  readonly spared?: readonly number[];
}

export type Event =
  | { readonly is: "asked"; readonly client: number; readonly operation: Operation }
  | { readonly is: "answered"; readonly client: number; readonly operation: Operation; readonly outcome: Outcome }
  | {
      readonly is: "wrote";
      readonly collection: string;
      readonly after: Stored;
      readonly before: Stored | undefined;
    }
  | { readonly is: "struck"; readonly fault: Fault; readonly where: string }
  /** Something that some history has to come to. */
  | { readonly is: "happened"; readonly what: Situation };
/** Is told what happens. */
export type Witness = (event: Event) => void;

export interface HistoryKind {
  readonly arbitrary: fc.Arbitrary<History>;
  /** Lets a history happen. Resolves to what was wrong in it, in sentences. */
  readonly run: (history: History, witness: Witness) => Promise<readonly string[]>;
}

/** Histories of `days`, under one of each kind of rate. */
export const histories = (
  days: fc.Arbitrary<History["days"]>,
  rates: { readonly [Rate in keyof FaultRates]: readonly number[] },
): fc.Arbitrary<History> =>
  fc.record({
    days,
    seed: fc.nat(),
    replicas: fc.constantFrom(1, 2),
    rates: fc.record({
      calls: fc.constantFrom(...rates.calls),
      deaths: fc.constantFrom(...rates.deaths),
      unfairness: fc.constantFrom(...rates.unfairness),
      slowness: fc.constantFrom(...rates.slowness),
    }),
  });

/** A petstore of its own, its checker, and clients that share what they know. */
export async function openShop(witness: Witness = () => {}, options: ClusterOptions = {}) {
  const checker = createOnlineChecker();
  const notice = createNotices((what) => witness({ is: "happened", what }));
  const cluster = await createCluster((collection, after, before) => {
    checker.written(collection, after);
    witness({ is: "wrote", collection, after, before });
    notice(collection, after, before);
  }, options);
  const known = nobodyKnown();
  const clientOf = (number: number) =>
    createClient(async (operation) => {
      witness({ is: "asked", client: number, operation });
      const outcome = await checker.follow(operation, () => perform(cluster, sent(operation)));
      witness({ is: "answered", client: number, operation, outcome });
      if (outcome.is === "refused" && outcome.reason === "VALIDATION_FAILED")
        throw new Error(`A history proves nothing by a request that is not valid: ${JSON.stringify(operation)}`);
      return outcome;
    }, known);
  return {
    checker,
    cluster,
    client: clientOf(0),
    /** The clients perform their programs at the same time. */
    live: (programs: readonly (readonly Operation[])[]) =>
      Promise.all(
        programs.map(async (program, index) => {
          const client = clientOf(index + 1);
          for (const operation of program) await client.do(operation);
        }),
      ),
    /** Performs operations one after the other. */
    async run(...operations: readonly Operation[]): Promise<void> {
      const client = clientOf(0);
      for (const operation of operations) await cluster.until(client.do(operation));
    },
    async runAllWorkers(): Promise<void> {
      for (const name of serviceNames) await cluster.until(cluster.runWorkers(name));
    },
  };
}
export type Shop = Awaited<ReturnType<typeof openShop>>;

/** One key may stand for one record after the other: of what the checker takes for two, what follows # is not sent. */
const sent = (operation: Operation): Operation => ({ ...operation, key: operation.key?.replace(/#.*/, "") });

/** Lets the faults strike that are not spared. */
export function strikesOf({ spared = [] }: History, witness: Witness): Strikes {
  let due = 0;
  return (fault, where) => {
    if (spared.includes(due++)) return false;
    witness({ is: "struck", fault, where });
    return true;
  };
}
