/** How often an address may show credentials that are not valid, at one gateway: guessing is to cost more than it can bring. */
import type { IncomingMessage } from "node:http";
import type { Runtime } from "@petstore/runtime/clock";
import type { CallerAddress } from "./caller-address.ts";
import { refuseBeyond } from "./counting.ts";
import { createRateLimits } from "./rate-limits.ts";

const RATE = { requests: 20, windowMs: 60_000, burst: 20 };

export interface FailedCredentials {
  /** Before credentials are looked at: throws an HttpError when the address has shown too many that were not valid. */
  refuse(request: IncomingMessage): void;
  /** They were not valid. */
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
