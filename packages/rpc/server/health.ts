/** grpc.health.v1: whether this process, and each of its services, takes calls. */
import { EventEmitter, on } from "node:events";
import { Code } from "@connectrpc/connect";
import { excerpt } from "connect-transcoder/excerpt";
import { RpcError } from "../errors.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { type Implementation, implement } from "./handlers.ts";

export type HealthState = ReturnType<typeof createHealth>;

/** Everything is NOT_SERVING until `set(true)`. */
export function createHealth(services: readonly string[]) {
  const statuses = new Map<string, Status>(["", ...services].map((name) => [name, Status.NOT_SERVING]));
  const changes = new EventEmitter().setMaxListeners(0);
  let drained = false;
  /** Sets the status of all services and of the process; after `drain` it does nothing. */
  const set = (serving: boolean): void => {
    if (drained || serving === (statuses.get("") === Status.SERVING)) return;
    for (const name of statuses.keys()) statuses.set(name, serving ? Status.SERVING : Status.NOT_SERVING);
    changes.emit("change");
  };
  return {
    /** By the full names of the services; "" is the process. */
    statuses: statuses as ReadonlyMap<string, Status>,
    /** Whether the process takes calls. */
    isServing: () => statuses.get("") === Status.SERVING,
    set,
    /** Sets everything to NOT_SERVING, for good. */
    drain(): void {
      set(false);
      drained = true;
    },
    /** Yields a service's status, SERVICE_UNKNOWN if there is none, and then every change until the signal aborts. */
    async *watch(service: string, signal: AbortSignal): AsyncGenerator<Status, never> {
      const changed = on(changes, "change", { signal });
      let last: Status | undefined;
      for (;;) {
        const status = statuses.get(service) ?? Status.SERVICE_UNKNOWN;
        if (status !== last) yield status;
        last = status;
        await changed.next();
      }
    },
  };
}

/** The service with its three RPCs. Unary ones are served however many other calls are running. */
export const healthService = (health: HealthState): Implementation =>
  implement(
    Health,
    {
      check({ service }) {
        const status = health.statuses.get(service);
        if (status === undefined) throw new RpcError(`no service "${excerpt(service)}" here`, Code.NotFound);
        return { status };
      },
      async *watch({ service }, { signal, draining }) {
        try {
          for await (const status of health.watch(service, signal)) yield { status };
        } catch (error) {
          if (draining.aborted) throw new RpcError("the process stops", Code.Unavailable);
          throw error;
        }
      },
      list: () => ({ statuses: Object.fromEntries([...health.statuses].map(([name, status]) => [name, { status }])) }),
    },
    { isDiagnostic: true },
  );
