/** What every kind of record needs beside its own work: what has expired is removed, and what is kept is counted. */
import type { Collection } from "@petstore/store/port";
import type { Deps } from "./deps.ts";
import {
  changesWorker,
  type ExpiringDocs,
  type Expiry,
  expiryWorker,
  listTombstones,
  tombstonesWorker,
} from "./expiry.ts";
import type { NameSearch } from "./folded-names.ts";
import type { Keys } from "./idempotency-keys.ts";
import type { ServiceModule } from "./module.ts";

interface Kept extends Pick<Deps, "clock" | "random" | "retention"> {
  readonly expiry: Expiry;
  readonly keys?: Keys;
  readonly names?: Pick<NameSearch<never>, "worker">;
}

/** `kind`: what the names of workers begin with, such as "pet". */
export function keepingOf(
  kind: string,
  records: ExpiringDocs & Pick<Collection<never>, "forgetChanges">,
  { keys, names, ...context }: Kept,
): Pick<ServiceModule, "workers" | "countable"> {
  return {
    workers: [
      ...(names ? [names.worker] : []),
      ...(keys ? [expiryWorker(`${kind}.keys`, keys.removeExpired, context)] : []),
      tombstonesWorker(`${kind}.tombstones`, records, context),
      changesWorker(`${kind}.changes`, records, context),
    ],
    countable: { tombstones: listTombstones(records, context.expiry), ...(keys && { keys: keys.list }) },
  };
}
