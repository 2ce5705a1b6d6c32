/**
 * How many requests with invalid credentials an address may send to one gateway: enough for mistakes, too few for guessing.
 */
import type { IncomingMessage } from "node:http";
import type { Runtime } from "@petstore/runtime/clock";
import type { CallerAddress } from "./caller-address.ts";
import { refuseBeyond } from "./counting.ts";
import { createRateLimits } from "./rate-limits.ts";

const RATE = { requests: 20, windowMs: 60_000, burst: 20 };

export interface FailedCredentials {
  /** Call before checking credentials. Throws an HttpError if the address has sent too many invalid ones. */
  refuse(request: IncomingMessage): void;
  /** Counts a request with invalid credentials. */
  count(request: IncomingMessage): void;
}

export function limitFailedCredentials(addressOf: CallerAddress, { clock }: Pick<Runtime, "clock">): FailedCredentials {
  const limits = createRateLimits(RATE, { clock });
  return {
    refuse: (request) =>
      refuseBeyond(limits.peek(addressOf(request)), "with credentials that are not valid may come from an address"),
    count: (request) => void limits.count(addressOf(request)),
  };
}
