/** Calling a service: plain gRPC below, and above it what every call needs. */

import type { Transport } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { withAmbiguousFailures } from "./ambiguous-failure.ts";
import { createBalancer, withLoadBalancing } from "./balancer.ts";
import { limitCalls } from "./call-limit.ts";
import { withKeyedRetry } from "./keyed-retry.ts";
import { openReplica, type Replica } from "./replica.ts";
import { withRetry } from "./retry.ts";

export interface ServiceTransportOptions extends Pick<Runtime, "clock" | "random" | "sleep"> {
  /** Where the service is, such as "http://127.0.0.1:8081": the addresses of all its replicas, one at least. */
  readonly urls: readonly string[];
  readonly errors: ErrorCatalogue;
  /** Lets the call through to internal services, and its caller header be believed. */
  readonly secret: string;
}

export interface ServiceTransport extends Transport {
  readonly replicas: readonly Replica[];
  close(): void;
}

/**
 * A transport to one service. From the inside out: gRPC over one HTTP/2 connection to each replica; calls of one turn of
 * the event loop travel together, each turn to the next replica; a lost reply is "unavailable"; what may be repeated is
 * repeated; a create with an idempotency key that was sent back asks again.
 */
export function createServiceTransport({ urls, secret, ...deps }: ServiceTransportOptions): ServiceTransport {
  const limit = limitCalls(deps.errors);
  const replicas = urls.map((url) => openReplica(url, secret, limit));
  const balancer = createBalancer(replicas, deps);
  const balanced = withLoadBalancing(balancer, replicas.length, deps);
  const { unary, stream } = withKeyedRetry(withRetry(withAmbiguousFailures(balanced, deps.errors), deps), deps);
  const close = () => {
    for (const replica of replicas) replica.close();
  };
  return { unary, stream, replicas, close };
}
