/** What a service shows of itself in metrics when it is asked. */
import type { Dispatcher } from "@petstore/rpc/server/dispatcher";
import { METRICS, type Metrics } from "../processes/metrics.ts";
import type { ServiceName } from "../processes/names.ts";
import type { Census, Countable } from "./records/census.ts";

interface Shown extends Pick<Census, "found"> {
  readonly load: Dispatcher["load"];
  readonly countable: Countable;
}

/** Returns what ends it. */
export function showService(
  { read }: Pick<Metrics, "read">,
  name: ServiceName,
  { load, found, countable: { isOutbox = false, unsettled } }: Shown,
): (() => void)[] {
  return [
    read(METRICS.limit, (tell) => tell(load.limit(), name, name)),
    read(METRICS.running, (tell) => tell(load.underWay(), name, name)),
    read(METRICS.streams, (tell) => tell(load.streams(), name)),
    read(METRICS.pending, (tell) => {
      for (const [state, count] of found.pending ?? []) tell(count, name, state);
    }),
    read(METRICS.oldestPending, (tell) => {
      const oldest = found.oldestMs();
      if (oldest !== undefined) tell(oldest / 1000, name);
    }),
    read(METRICS.outboxLag, (tell) => {
      const oldest = isOutbox ? found.oldestMs() : undefined;
      if (oldest !== undefined) tell(oldest / 1000);
    }),
    read(METRICS.tombstones, (tell) => found.tombstones !== undefined && tell(found.tombstones, name)),
    read(METRICS.keys, (tell) => found.keys !== undefined && tell(found.keys, name)),
    read(METRICS.unsettled, (tell) => unsettled && tell(unsettled())),
  ];
}
