/** What is counted, measured and traced: each request at the port, and each call that is made for it. */
import type { IncomingMessage, RequestListener } from "node:http";
import type { Transport } from "@connectrpc/connect";
import { gauge, HTTP_REQUESTS, RPC_CALLS_MADE } from "@petstore/metrics/declaration";
import type { Form } from "@petstore/metrics/exposition";
import { measureNode } from "@petstore/metrics/node";
import { createRegistry } from "@petstore/metrics/registry";
import { recordCalls } from "@petstore/rpc/call";
import { withDurations } from "@petstore/rpc/client/layers";
import { whenOver } from "@petstore/rpc/http/answers";
import { endRequestSpan, methodName, startRequestSpan } from "@petstore/rpc/http/request-span";
import { withSpans } from "@petstore/rpc/traced";
import { realTime, stopwatch } from "@petstore/runtime/clock";
import { type Environment, readEnvironment } from "@petstore/runtime/environment";
import {
  type CallersTrace,
  readTraceparent,
  readTracestate,
  TRACEPARENT,
  TRACESTATE,
  traceHeaders,
} from "@petstore/trace/context";
import { ATTR_SERVICE_NAME } from "@petstore/trace/names";
import { traceConfig, traceSettings } from "@petstore/trace/settings";
import { openTracing, type Span } from "@petstore/trace/tracing";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import manifest from "../package.json" with { type: "json" };

const NAME = "connect-transcoder";
const BUILD = gauge("connect_transcoder_build_info", "1, with the version that runs.", ["version"]);

/** Headers by which a trace goes on at the target. They have to be among those that are passed on. */
export const TRACE_HEADERS: readonly string[] = [TRACEPARENT, TRACESTATE];

/** What sends spans. Installed by those who want traces. */
const PACKAGES = Object.entries(manifest.peerDependencies)
  .filter(([name]) => name.startsWith("@opentelemetry/"))
  .map(([name, range]) => `"${name}@${range}"`);

/** Where probes ask. They would bury the requests of others in traces. */
const PROBED = "/healthz";

/** What is learned of a request on its way: the template of its path, and its span. Without one it is not recorded. */
type Noted = IncomingMessage & { route?: string; span?: Span };

export interface TelemetryOptions {
  readonly environment: Environment;
  readonly scheme: "http" | "https";
  /** Whether anybody can ask for metrics; without that Node is not measured. */
  readonly isRead: boolean;
  readonly log: Logger;
}

export type Telemetry = Awaited<ReturnType<typeof openTelemetry>>;

/** @throws ConfigError when a variable of OpenTelemetry can't be used */
export async function openTelemetry({ environment, scheme, isRead, log }: TelemetryOptions) {
  const registry = createRegistry(realTime.wallClock);
  registry.read(BUILD, (tell) => tell(1, manifest.version));
  if (isRead) measureNode(registry);
  const requests = registry.histogram(HTTP_REQUESTS);
  const timing = { clock: stopwatch, callEnded: recordCalls(registry.histogram(RPC_CALLS_MADE)) };
  const given = traceConfig(readEnvironment(environment, traceSettings));
  const config = given && { ...given, scope: NAME, resource: { [ATTR_SERVICE_NAME]: NAME, ...given.resource } };
  const tracing = await openTracing(config, { ...realTime, log }).catch(tellMissing);

  function begin({ raw, headers, id, method, originalUrl }: FastifyRequest, route: string | undefined): void {
    const callers = readTraceparent(headers[TRACEPARENT] as string | undefined);
    // Whether a caller's trace is recorded is its own decision, unless the variables say otherwise. A new trace is called as
    // the request is, unless the caller said how that is called.
    const begun = headers["x-request-id"] === id ? undefined : id;
    const origin = tracing?.accept((name) => headers[name] as string | undefined, "trusted proxy", begun);
    if (tracing && origin)
      (raw as Noted).span = startRequestSpan(tracing, origin, { method, target: originalUrl, route, scheme });
    const { span } = raw as Noted;
    const state = readTracestate(headers[TRACESTATE] as string | undefined);
    if (span) passOn(raw, traceHeaders(span.context));
    else passOn(raw, callers ? unrecorded(callers, state, !tracing && callers.sampled) : {});
  }

  return {
    text: (form: Form): string => registry.text(form),
    /** In front of all that answers. */
    observed:
      (next: RequestListener): RequestListener =>
      (request: Noted, response) => {
        const since = stopwatch();
        whenOver(request, response, (status) => {
          const { method, route = "", span } = request;
          requests.of(methodName(method), route, `${status}`).record((stopwatch() - since) / 1000, span?.context);
          if (span) endRequestSpan(span, status);
        });
        next(request, response);
      },
    /** To be called before anything that may refuse a request. */
    follow(app: FastifyInstance): void {
      app.addHook("onRequest", (request, _, done) => {
        const route = request.operation?.route ?? request.routeOptions.url;
        if (route !== undefined) (request.raw as Noted).route = route;
        if (route !== PROBED) begin(request, route);
        done();
      });
    },
    /** Around the way to a service at that URL. */
    called: (transport: Transport, url: string): Transport => withDurations(withSpans(transport, tracing, url), timing),
    /** Sends the spans that are left. */
    close: async (): Promise<void> => tracing?.close(),
  };
}

function tellMissing(error: NodeJS.ErrnoException): never {
  if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  throw new Error(
    `OTEL_EXPORTER_OTLP_ENDPOINT is set, and traces need more packages: npm install ${PACKAGES.join(" ")}`,
  );
}

/** A trace that has no span here goes on from its caller's. Where this gateway decided against recording it, it says so. */
const unrecorded = (trace: CallersTrace, state: string | undefined, isRecorded: boolean) => ({
  [TRACEPARENT]: `00-${trace.traceId}-${trace.spanId}-${isRecorded ? "01" : "00"}`,
  ...(state !== undefined && { [TRACESTATE]: state }),
});

/** What the caller sent and is no trace is not passed on. */
function passOn({ headers }: IncomingMessage, trace: Readonly<Record<string, string>>): void {
  for (const name of TRACE_HEADERS) {
    const value = trace[name];
    if (value === undefined) delete headers[name];
    else headers[name] = value;
  }
}
