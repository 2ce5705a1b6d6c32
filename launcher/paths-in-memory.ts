/** The ways to services of the same process. */
import { pipeline } from "@petstore/rpc/client/pipeline";
import { withSpans } from "@petstore/rpc/client/traced";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import type { Common, PathTo } from "../processes/common.ts";
import { errors } from "../processes/errors.ts";
import type { ServiceName } from "../processes/names.ts";
import type { OpenService } from "../services/open.ts";

/** Services that call each other are opened one after another, so each is looked up when it is called. */
export function pathsInMemory(
  services: () => ReadonlyMap<ServiceName, OpenService>,
  { time, tracing, metrics }: Pick<Common, "time" | "tracing" | "metrics">,
): PathTo {
  const inMemory = (name: ServiceName) => inProcessTransport(() => pick(services(), name).dispatcher);
  return (name) => ({
    ...pipeline(withSpans(inMemory(name), tracing), { errors, callEnded: metrics.called, ...time }),
    replicas: () => [{ isServing: async () => pick(services(), name).health.isServing() }],
  });
}

export function pick(services: ReadonlyMap<ServiceName, OpenService>, name: ServiceName): OpenService {
  const found = services.get(name);
  if (!found) throw new Error(`${name} is not open yet.`);
  return found;
}
