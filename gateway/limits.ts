/**
 * What is refused for being too much, at both endpoints: calls that a service has no room for (load shedding), requests that
 * the port has no memory for, requests beyond a caller's rate, and streams beyond those that a caller may have open.
 * `keepResponses` keeps with each request the response until whose end it counts.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { type Admission, createShedLog } from "@petstore/rpc/admission/admission";
import { ANONYMOUS, callerName, type Principal } from "@petstore/rpc/call";
import type { CallerAddress } from "@petstore/rpc/http/hosts";
import { defaultStreamLimits, type StreamLimits } from "@petstore/rpc/http/limits";
import { isRefused, TOO_MANY_UNDER_WAY } from "@petstore/rpc/http/request-budget";
import { countAsStream } from "@petstore/rpc/http/requests";
import { createOpenStreams } from "@petstore/rpc/server/stream-calls";
import type { Runtime } from "@petstore/runtime/clock";
import type { Rate, Verdict } from "@petstore/runtime/rate";
import {
  type EarlyRefusals,
  HttpError,
  isGone,
  type Operation,
  refuseEarly,
  type TranscoderOptions,
} from "connect-transcoder";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { METRICS, type Metrics } from "../processes/metrics.ts";
import type { RateLimits } from "./rates.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** The rate headers of the answer. Counts a request that is answered before its caller is known. */
    rateHeaders(request: FastifyRequest): Record<string, string>;
  }
  interface FastifyRequest {
    /** Whether it was refused for lack of room. Such requests are logged together, not one by one. */
    isShed: boolean;
    response?: ServerResponse;
    /** The verdict on it, if there are rates and it has been counted. */
    verdict: Verdict | undefined;
    /**
     * Set for a request that is answered by a stream. Aborts when the stream has to end; the reason is the caller's error.
     */
    ended: AbortSignal | undefined;
  }
}

/** One instance for all refusals: creating an error captures a stack trace, which would cost more than the rest. */
export const OVERLOADED = new HttpError("OVERLOADED", TOO_MANY_UNDER_WAY);

export interface LimitsOptions {
  /** Without them callers have no rates. */
  readonly rates?: RateLimits | undefined;
  readonly streams?: StreamLimits | undefined;
  /** Identifies callers that do not authenticate. */
  readonly addressOf: CallerAddress;
}

export interface SheddingOptions extends TranscoderOptions, LimitsOptions, Pick<Runtime, "clock" | "log"> {
  readonly clock: Runtime["clock"];
  /** Each with its admission control. Without `admission` every call is let in. */
  readonly services: readonly (TranscoderOptions["services"][number] & { readonly admission?: Admission })[];
  readonly moreHeaders: EarlyRefusals["moreHeaders"];
  /** Told of requests that are refused before Fastify sees them. */
  readonly onEarly: (request: IncomingMessage, operation: Operation) => void;
}

/** Refuses calls that a service has no room for. */
export function createShedding(options: SheddingOptions) {
  const { services, addressOf, onEarly } = options;
  const admissions = new Map(services.map(({ desc, admission }) => [desc.typeName, admission]));
  const logShed = createShedLog(options);
  const admissionOf = ({ parent }: DescMethod) => admissions.get(parent.typeName);
  /** Refuses most requests for HTTP operations without room, by verb and path alone. */
  const early = (next: RequestListener) =>
    refuseEarly(
      {
        ...options,
        error: OVERLOADED,
        refuses(request, operation) {
          const { method } = operation;
          const hasRoom = !isRefused(request) && admissionOf(method)?.hasRoom(method, addressOf(request)) !== false;
          if (hasRoom) return false;
          logShed(method);
          onEarly(request, operation);
          return true;
        },
      },
      next,
    );

  /** Counts a request to call the method until its answer is over. Throws OVERLOADED if there is no room for it. */
  function letIn(request: FastifyRequest, method: DescMethod): void {
    const { response } = request;
    // A response that is gone already would never emit `close`, and so would count forever.
    const counted = response && !isGone(response) ? response : undefined;
    if (admissionOf(method)?.letIn(method, addressOf(request.raw), counted) !== false) return;
    request.isShed = true;
    logShed(method);
    throw OVERLOADED;
  }
  return { early, letIn };
}

/** Keeps the response of each request, which counts until that is over. */
export function keepResponses(app: FastifyInstance): void {
  app.decorateRequest("isShed", false);
  app.decorateRequest("response");
  app.addHook("onRequest", (request, { raw }, done) => {
    request.response = raw;
    done();
  });
}

/** Refuses requests for whose work the port has no memory. */
export function refuseWithoutMemory(app: FastifyInstance): void {
  app.addHook("onRequest", ({ raw }, _reply, done) => done(isRefused(raw) ? OVERLOADED : undefined));
}

/**
 * Counts the requests of both endpoints together and refuses those beyond a caller's rate: an RPC or operation as soon as
 * the caller is known, a request for an unknown path at once. Requests for what is open to all, such as health, are counted
 * but never refused.
 */
export function createRates({ rates, addressOf }: LimitsOptions) {
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

/**
 * Counts a request that is answered by a stream, until its answer is over. Throws TOO_MANY_STREAMS. `recheck` gets a function
 * that ends the stream with an error for its caller. It returns a function to call when the stream is over.
 */
export function countStreams({ streams = defaultStreamLimits, addressOf }: LimitsOptions, { read }: Metrics) {
  const openStreams = createOpenStreams(streams);
  read(METRICS.streams, (tell) => tell(openStreams.count(), "gateway"));
  return (
    request: FastifyRequest,
    { methodKind }: DescMethod,
    principal: Principal,
    recheck: (end: (error: unknown) => void) => (() => void) | undefined,
  ): void => {
    const { raw, response } = request;
    if (methodKind === "unary" || !response || isGone(response)) return;
    const leaveStreams = openStreams.enter(callerName(principal, () => addressOf(request)));
    if (typeof leaveStreams === "string") throw new HttpError("TOO_MANY_STREAMS", leaveStreams);
    const ended = new AbortController();
    request.ended = ended.signal;
    const leave = recheck((error) => ended.abort(error));
    response.once("close", () => {
      leaveStreams();
      leave?.();
    });
    countAsStream(raw, response);
  };
}
