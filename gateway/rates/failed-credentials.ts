/**
 * Limits what invalid credentials cost a gateway: processor time and lines of the log. Valid ones always pass, for their
 * holder may share an address with whoever sends the others, behind a proxy for example. It protects no secret: keys and
 * signatures have too many bits to be guessed.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { accessTokenIn } from "@petstore/rpc/auth/authentication";
import type { Credentials } from "@petstore/rpc/auth/credentials";
import type { CallerAddress } from "@petstore/rpc/http/hosts";
import type { Runtime } from "@petstore/runtime/clock";
import { refuseBeyond } from "../limits.ts";
import { createLatest, createRateLimits } from "./rate-limits.ts";

/** Requests with invalid credentials, of one address. */
const FAILURES = { requests: 20, windowMs: 60_000, burst: 20 };
/** Access tokens that are verified for an address that sends invalid credentials, not counting those known to be valid. */
const CHECKS = { requests: 50, windowMs: 1000, burst: 50 };
/** How many valid access tokens are remembered at most, by their hashes. */
const MAX_VALID = 10_000;

export type FailedCredentials = ReturnType<typeof limitFailedCredentials>;

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
