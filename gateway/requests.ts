/** What is recorded of every request: a metric of how it ended, a line of the log, who calls what is deprecated, a span. */
import type { IncomingMessage, RequestListener } from "node:http";
import type { DescService } from "@bufbuild/protobuf";
import { ANONYMOUS, callerName } from "@petstore/rpc/call";
import { CALLER_LEFT, whenOver } from "@petstore/rpc/http/answers";
import type { CallerAddress } from "@petstore/rpc/http/hosts";
import { endRequestSpan, methodName, startRequestSpan } from "@petstore/rpc/http/request-span";
import { type TraceContext, traceIds } from "@petstore/trace/context";
import type { Span, Tracing } from "@petstore/trace/tracing";
import { HttpError, type Operation, operationsOf, splitTarget } from "connect-transcoder";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { Metrics } from "../processes/metrics.ts";
import type { DeprecatedCalls } from "./deprecated-calls.ts";

/**
 * A request, as Fastify has it if it comes that far, and the template of its path once that is known. Without one it asks for
 * nothing that there is.
 */
type Noted = IncomingMessage & { arrived?: FastifyRequest; route?: string };

declare module "fastify" {
  interface FastifyInstance {
    /** Counts a request that a layer refused. */
    countRefusal(error: unknown): void;
  }
  interface FastifyRequest {
    /** Present if the trace of the request is recorded. */
    span?: Span | undefined;
    trace?: TraceContext | undefined;
  }
}

export interface RequestsOptions {
  /** In front of every path, such as "/api"; empty for none. */
  readonly basePath: string;
  readonly deprecatedCalls?: DeprecatedCalls | undefined;
  /** Undefined where traces are off. */
  readonly tracing?: Tracing | undefined;
  readonly addressOf: CallerAddress;
}

/** A metric of how each request was answered, refused, or left by its caller. */
export function recordRequests(
  { requests, deprecated, countRefusal, now }: Metrics,
  { basePath, services }: RequestsOptions & { readonly services: readonly { readonly desc: DescService }[] },
) {
  const routeOf = ({ path }: Operation) => basePath + path;

  function record(request: Noted, status: number, since: number): void {
    const { method, route = "", arrived } = request;
    requests.of(methodName(method), route, `${status}`).record((now() - since) / 1000, arrived?.trace);
  }

  return {
    /** In front of all that answers. */
    recorded:
      (next: RequestListener): RequestListener =>
      (request: Noted, response) => {
        const since = now();
        whenOver(request, response, (status) => record(request, status, since));
        next(request, response);
      },
    /** Notes what a request asks for that Fastify does not see. */
    note(request: Noted, operation: Operation): void {
      request.route = routeOf(operation);
      countRefusal("OVERLOADED");
    },
    /** Notes what all others ask for. */
    layer(app: FastifyInstance): void {
      app.decorate("countRefusal", (error) => {
        if (error instanceof HttpError) countRefusal(error.code);
      });
      // At zero from the start: Prometheus takes the first value of a series for no increase.
      for (const operation of services.flatMap(({ desc }) => operationsOf(desc)))
        if (operation.deprecation) deprecated.of(routeOf(operation));
      app.addHook("onRequest", (request, _reply, done) => {
        const { operation } = request;
        const route = operation ? routeOf(operation) : request.routeOptions.url;
        const noted: Noted = request.raw;
        noted.arrived = request;
        if (route !== undefined) noted.route = route;
        if (operation?.deprecation) deprecated.of(routeOf(operation)).add();
        done();
      });
      app.addHook("onError", (_request, _reply, error, done) => {
        app.countRefusal(error);
        done();
      });
    },
  };
}

/** Logs one line for each request, after its answer was sent. */
export const logRequests = (log: Logger) => (app: FastifyInstance) =>
  app.addHook(
    "onResponse",
    (
      { id: requestId, calledAs, method, originalUrl, caller: who, trace, isShed },
      { raw, statusCode, elapsedTime },
      done,
    ) => {
      if (isShed) return done();
      const path = splitTarget(originalUrl).path;
      const caller = who || undefined;
      // The services log the call under this id.
      const sharedWith = calledAs === requestId ? undefined : calledAs || undefined;
      const status = raw.headersSent ? statusCode : CALLER_LEFT;
      const ms = Math.round(elapsedTime);
      log.info({ requestId, ...traceIds(trace), sharedWith, caller, method, path, status, ms });
      done();
    },
  );

/** Notes who calls what is deprecated. */
export const countDeprecated =
  ({ deprecatedCalls, addressOf }: RequestsOptions) =>
  (app: FastifyInstance) =>
    deprecatedCalls &&
    app.addHook("onSend", (request, _reply, _payload, done) => {
      const { operation, caller: id } = request; // empty for a caller that was not let in
      const name = () => callerName(id === ANONYMOUS.id ? ANONYMOUS : { id }, () => addressOf(request));
      if (operation?.deprecation && id) deprecatedCalls.count(operation, name());
      done();
    });

/** A span for each request. Probes have none. The others' trace is in the request, and from there in the calls made for it and in the log. */
export const traceRequests =
  ({ tracing, addressOf, tls }: RequestsOptions & { readonly tls?: object | undefined }) =>
  (app: FastifyInstance): void => {
    if (!tracing) return;
    const scheme = tls ? "https" : "http";
    /** Of the requests under way, by id. */
    const recorded = new Map<string, TraceContext>();

    app.decorateRequest("trace", undefined);
    app.decorateRequest("span", undefined);
    app.addHook("onRequest", (request, { raw: response }, done) => {
      if (request.routeOptions.config.answersAnyHost) return done();
      const { raw, id, headers } = request;
      const sender = addressOf.isProxy?.(raw) ? "trusted proxy" : "stranger";
      // An id of the caller's own can't name a trace.
      const begun = headers["x-request-id"] === id ? undefined : id;
      const origin = tracing.accept((name) => headers[name] as string | undefined, sender, begun);
      if (!origin) return done();
      const { method, originalUrl: target } = request;
      const { route }: Noted = raw;
      const span = startRequestSpan(tracing, origin, { method, target, route, scheme });
      request.span = span;
      request.trace = span.context;
      (request.log as Logger).setBindings(traceIds(span.context) as object);
      recorded.set(id, span.context);
      // Not Fastify's onResponse, which never comes when the caller of HTTP/1.1 has left.
      whenOver(raw, response, (status) => {
        request.span = undefined; // an answer to nobody may still be sent, and nothing is added to a span that has ended
        endRequestSpan(span, status);
        // Not at once: those that the same call answers are sent in this turn, too.
        setImmediate(() => recorded.get(id) === span.context && recorded.delete(id));
      });
      done();
    });
    // One call may answer several requests: it is part of the first one's trace, and the others lead there.
    app.addHook("onSend", ({ id, calledAs, span }, _reply, _payload, done) => {
      const first = span && calledAs !== id ? recorded.get(calledAs) : undefined;
      if (first) span?.link(first);
      done();
    });
  };
