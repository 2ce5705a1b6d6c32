/**
 * A client's path to a service, as one list. From the caller inwards: keyed retry, retry, ambiguous failures, load
 * balancing over the replicas of the service, and to each of them one connection with one link, on which calls of one
 * tick travel together.
 */
import type { Transport } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { withAmbiguousFailures } from "./ambiguous-failure.ts";
import { createBalancer } from "./balancer.ts";
import { limitCalls } from "./call-limit.ts";
import { withKeyedRetry } from "./keyed-retry.ts";
import { withLoadBalancing } from "./load-balancing.ts";
import { openReplica, type Replica, type ReplicaOptions } from "./replica.ts";
import { withRetry } from "./retry.ts";

export interface PipelineDeps extends Pick<Runtime, "clock" | "random" | "sleep"> {
  readonly errors: ErrorCatalogue;
}

type Layer = (next: Transport, deps: PipelineDeps) => Transport;

/** What stands above the connections, outermost first. */
const layers: readonly Layer[] = [withKeyedRetry, withRetry, withAmbiguousFailures];

/** The layers of a client above what reaches the service. */
export const pipeline = (innermost: Transport, deps: PipelineDeps): Transport =>
  layers.reduceRight((next, layer) => layer(next, deps), innermost);

export interface ServiceTransportOptions
  extends PipelineDeps,
    Pick<ReplicaOptions, "secret" | "certificates" | "link" | "log"> {
  /** Where the service is, such as "http://127.0.0.1:8081": the addresses of all its replicas, one at least. */
  readonly urls: readonly string[];
}

export interface ServiceTransport extends Transport {
  readonly replicas: readonly Replica[];
  close(): void;
}

/** A transport to one service. It connects when it is first used. */
export function createServiceTransport({
  urls,
  secret,
  certificates,
  link,
  log,
  ...deps
}: ServiceTransportOptions): ServiceTransport {
  const limit = limitCalls(deps.errors);
  const replicas = urls.map((url) => openReplica(url, { secret, certificates, limit, link, log, clock: deps.clock }));
  const balanced = withLoadBalancing(createBalancer(replicas, deps), deps);
  const close = () => {
    for (const replica of replicas) replica.close();
  };
  return { ...pipeline(balanced, deps), replicas, close };
}
