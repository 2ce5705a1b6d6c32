/**
 * Counts the requests of both endpoints together and refuses those beyond a caller's rate: an RPC or operation as soon as
 * the caller is known, a request for an unknown path at once. Requests for what is open to all, such as health, are counted
 * but never refused.
 */
import type { IncomingMessage } from "node:http";
import { ANONYMOUS, callerName, type Principal } from "@petstore/rpc/call";
import type { CallerAddress } from "@petstore/rpc/http/hosts";
import type { Rate, Verdict } from "@petstore/runtime/rate";
import { HttpError } from "connect-transcoder";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { RateLimits } from "./rate-limits.ts";

export interface RatesOptions {
  /** Without them there is no limit. */
  readonly rates?: RateLimits | undefined;
  /** Identifies callers that do not authenticate. */
  readonly addressOf: CallerAddress;
}

declare module "fastify" {
  interface FastifyInstance {
    /** The rate headers of the answer. Counts a request that is answered before its caller is known. */
    rateHeaders(request: FastifyRequest): Record<string, string>;
  }
  interface FastifyRequest {
    /** The verdict on it, if there are rates and it has been counted. */
    verdict: Verdict | undefined;
  }
}

export function createRates({ rates, addressOf }: RatesOptions) {
  const nameOf = (request: FastifyRequest | IncomingMessage, principal: Principal) =>
    callerName(principal, () => addressOf(request));
  const judge = (request: FastifyRequest, principal: Principal): Verdict | undefined => {
    request.verdict = rates?.count(nameOf(request, principal), principal.rate);
    return request.verdict;
  };
  /** Counts a request, once its caller is known. Throws an HttpError beyond the rate. */
  const count = (request: FastifyRequest, principal: Principal) =>
    refuseBeyond(judge(request, principal), "are allowed");

  /** Counts and refuses requests without an operation, and adds the rate headers to all answers. */
  function limit(app: FastifyInstance): void {
    app.decorateRequest("verdict", undefined);
    if (!rates) return void app.decorate("rateHeaders", () => ({}));
    app.decorate("rateHeaders", (request) => {
      // A browser's preflight does not count as a request.
      const verdict =
        request.verdict ??
        (request.method === "OPTIONS" ? rates.peek(nameOf(request, ANONYMOUS)) : judge(request, ANONYMOUS));
      return verdict ? rateHeaders(verdict) : {};
    });
    app.addHook("onRequest", (request, _reply, done) => {
      if (hasNoOperation(request)) count(request, ANONYMOUS);
      done();
    });
    app.addHook("onSend", (request, reply, _payload, done) => {
      reply.headers(app.rateHeaders(request));
      done();
    });
  }

  /** Counts a request that Fastify does not see. Returns the rate headers of its answer. */
  function refused(request: IncomingMessage): Record<string, string> {
    const verdict = rates?.count(nameOf(request, ANONYMOUS));
    return verdict ? rateHeaders(verdict) : {};
  }
  return { count, limit, refused };
}

/** With CORS there is a route for every OPTIONS. */
const hasNoOperation = ({ is404, method }: FastifyRequest): boolean => is404 || method === "OPTIONS";

/** Throws an HttpError beyond the rate. */
export function refuseBeyond(verdict: Verdict | undefined, what: string): void {
  if (!verdict || verdict.allowed) return;
  const { rate, retryMs } = verdict;
  const after = Math.ceil(retryMs / 1000);
  throw new HttpError("RATE_LIMITED", `Only ${describe(rate)} ${what}: try again in ${after} s.`, {
    "retry-after": `${after}`,
  });
}

const describe = ({ requests, windowMs, burst }: Rate): string =>
  `${requests} requests in ${windowMs / 1000} s${burst < requests ? `, ${burst} of them at once,` : ""}`;

/** The fields of draft-ietf-httpapi-ratelimit-headers-10: the policy, what remains, and the seconds to the whole burst. */
const rateHeaders = ({ rate, remaining, resetMs }: Verdict): Record<string, string> => ({
  "ratelimit-policy": ratePolicy(rate),
  ratelimit: `"default";r=${remaining};t=${Math.ceil(resetMs / 1000)}`,
});

/** `burst` is a parameter of our own, which the draft allows. */
export const ratePolicy = ({ requests, windowMs, burst }: Rate): string =>
  `"default";q=${requests};w=${windowMs / 1000}${burst === requests ? "" : `;burst=${burst}`}`;
