/**
 * A client's path to a service, as one list of layers. From the caller inwards: durations, retry, ambiguous failures, load balancing
 * over the replicas, and to each replica one connection with one link, on which calls of one tick are sent together.
 */
import type { Transport } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import type { CallEnded } from "../call.ts";
import type { ErrorCatalogue } from "../errors.ts";
import { limitCalls } from "./call-limit.ts";
import { withDurations } from "./durations.ts";
import { withAmbiguousFailures } from "./failed-call.ts";
import { withLoadBalancing } from "./load-balancing.ts";
import { openReplica, type ReplicaOptions } from "./replica.ts";
import { type Lookup, openReplicas } from "./replicas.ts";
import { withRetry } from "./retry.ts";

export interface PipelineDeps extends Pick<Runtime, "clock" | "random" | "sleep"> {
  readonly errors: ErrorCatalogue;
  readonly callEnded?: CallEnded | undefined;
}

type Layer = (next: Transport, deps: PipelineDeps) => Transport;

/** The layers above load balancing, outermost first. */
const layers: readonly Layer[] = [withDurations, withRetry, withAmbiguousFailures];

/** Puts a client's layers around a transport that reaches the service. */
export const pipeline = (innermost: Transport, deps: PipelineDeps): Transport =>
  layers.reduceRight((next, layer) => layer(next, deps), innermost);

export interface ServiceTransportOptions
  extends PipelineDeps,
    Pick<ReplicaOptions, "secret" | "certificates" | "link" | "log" | "tracing"> {
  /** Where all replicas of the service are, such as "http://127.0.0.1:8081"; at least one. A host name may stand for several. */
  readonly urls: readonly string[];
  readonly lookup?: Lookup | undefined;
}

export type ServiceTransport = ReturnType<typeof createServiceTransport>;

/** A transport to one service. It connects when it is first used. */
export function createServiceTransport({
  urls,
  lookup,
  secret,
  certificates,
  link,
  log,
  tracing,
  ...deps
}: ServiceTransportOptions) {
  const limit = limitCalls(deps.errors);
  const links = { hadNone: false };
  const options = { secret, certificates, limit, link, links, log, tracing, clock: deps.clock };
  const open = (url: string, address?: string) => openReplica(url, { ...options, address });
  const { balancer, ...all } = openReplicas({ urls, open, lookup, log, ...deps });
  return { ...pipeline(withLoadBalancing(balancer, { ...deps, lookAgain: all.lookAgain }), deps), ...all };
}
