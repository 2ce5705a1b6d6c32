/** How much each caller has sent, and which addresses send invalid credentials: remembered in bounded memory. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { accessTokenIn } from "@petstore/rpc/auth/authentication";
import type { Credentials } from "@petstore/rpc/auth/credentials";
import type { CallerAddress } from "@petstore/rpc/http/hosts";
import type { Runtime } from "@petstore/runtime/clock";
import { judge, type Rate, type Used, type Verdict } from "@petstore/runtime/rate";
import { refuseBeyond } from "./limits.ts";

export type RateLimits = ReturnType<typeof createRateLimits>;

/** How many callers are remembered at most. Those who were silent for longest are forgotten. */
const MAX_CALLERS = 100_000;

/** `rate` applies to callers without a rate of their own; if it is undefined, these are not limited. */
export function createRateLimits(
  rate: Rate | undefined,
  { clock, maxCallers = MAX_CALLERS }: Pick<Runtime, "clock"> & { readonly maxCallers?: number },
) {
  const all = createLatest<Used>(maxCallers);
  /** Judges as `count` does, but counts nothing. */
  const peek = (caller: string, own = rate): Verdict | undefined => own && judge(own, all.get(caller), clock());
  return {
    peek,
    /** Counts a request of a caller, unless it is beyond the caller's rate. Returns undefined if the caller has no rate. */
    count(caller: string, own?: Rate): Verdict | undefined {
      const verdict = peek(caller, own);
      if (verdict?.allowed) all.set(caller, verdict.used);
      return verdict;
    },
  };
}

/**
 * Remembers `max` keys at most, and always the last `max / 2` that were set. They are forgotten by the half, at once: to find
 * the oldest key of a Map, V8 walks over all that were deleted before it, for each key that is set.
 */
export function createLatest<V>(max: number) {
  let newer = new Map<string, V>();
  let older = new Map<string, V>();
  return {
    get: (key: string) => newer.get(key) ?? older.get(key),
    set(key: string, value: V): void {
      newer.set(key, value);
      if (newer.size < max / 2) return;
      older = newer;
      newer = new Map();
    },
    delete(key: string): void {
      newer.delete(key);
      older.delete(key);
    },
  };
}

/** Requests with invalid credentials, of one address. */
const FAILURES = { requests: 20, windowMs: 60_000, burst: 20 };
/** Access tokens that are verified for an address that sends invalid credentials, not counting those known to be valid. */
const CHECKS = { requests: 50, windowMs: 1000, burst: 50 };
/** How many valid access tokens are remembered at most, by their hashes. */
const MAX_VALID = 10_000;

export type FailedCredentials = ReturnType<typeof limitFailedCredentials>;

/**
 * Limits what invalid credentials cost a gateway: processor time and lines of the log. Valid ones always pass, for their
 * holder may share an address with whoever sends the others, behind a proxy for example. It protects no secret: keys and
 * signatures have too many bits to be guessed.
 */
export function limitFailedCredentials(addressOf: CallerAddress, { clock }: Pick<Runtime, "clock">) {
  const failures = createRateLimits(FAILURES, { clock });
  const checks = createRateLimits(CHECKS, { clock });
  /** They are verified again each time, so that none outlives its end. */
  const valid = createLatest<true>(MAX_VALID);
  const hasFailures = (address: string) => failures.peek(address)?.remaining !== FAILURES.burst - 1;
  return {
    /** Call before credentials are judged. Throws an HttpError if too many of the address's access tokens were verified. */
    begin(request: IncomingMessage, credentials: Credentials): void {
      const address = addressOf(request);
      if (!hasFailures(address)) return;
      const name = nameIn(credentials);
      if (name !== undefined && !valid.get(name))
        refuseBeyond(
          checks.count(address),
          "with other access tokens may come from an address that sends invalid ones",
        );
    },
    /** Call for credentials that are valid. */
    succeed(credentials: Credentials): void {
      const name = nameIn(credentials);
      if (name !== undefined) valid.set(name, true);
    },
    /** Counts a request with invalid credentials. Throws an HttpError if the address has sent too many. */
    fail(request: IncomingMessage, credentials: Credentials): void {
      const name = nameIn(credentials);
      if (name !== undefined) valid.delete(name);
      const verdict = failures.count(addressOf(request));
      refuseBeyond(verdict, "with credentials that are not valid may come from an address");
    },
  };
}

/** The hash of an access token. An API key has none: its check costs too little to be limited. */
function nameIn(credentials: Credentials): string | undefined {
  const token = accessTokenIn(credentials);
  return token === undefined ? undefined : createHash("sha256").update(token).digest("base64");
}
