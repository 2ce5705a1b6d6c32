/** A span for each request, from its arrival to the end of its answer. */
import { whenOver } from "@petstore/rpc/http/answers";
import type { CallerAddress } from "@petstore/rpc/http/hosts";
import { endRequestSpan, startRequestSpan } from "@petstore/rpc/http/request-span";
import { type TraceContext, traceIds } from "@petstore/trace/context";
import type { Span, Tracing } from "@petstore/trace/tracing";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { Noted } from "./requests.ts";

export interface TracesOptions {
  /** Undefined where traces are off. */
  readonly tracing?: Tracing | undefined;
  readonly addressOf: CallerAddress;
  /** With it every request comes over TLS. */
  readonly tls?: object | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Present if the trace of the request is recorded. */
    span?: Span | undefined;
    trace?: TraceContext | undefined;
  }
}

/** Probes have no span. The others' trace is in the request, and from there in the calls made for it and in the log. */
export const traceRequests =
  ({ tracing, addressOf, tls }: TracesOptions) =>
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
