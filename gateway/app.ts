/** Builds the gateway: the layers that every request passes, the operations of the services, and additional plugins. */
import type { IncomingMessage } from "node:http";
import { callHeaders } from "@petstore/rpc/call";
import type { HostCheck } from "@petstore/rpc/http/hosts";
import { defaultLimits, type OnePortLimits } from "@petstore/rpc/http/limits";
import { createOnePortServer } from "@petstore/rpc/http/one-port";
import { behindAnswers } from "@petstore/rpc/http/refusals";
import type { ServerTls } from "@petstore/rpc/tls/certificates";
import type { Runtime } from "@petstore/runtime/clock";
import {
  type CatalogueErrors,
  type DeprecationPolicy,
  HttpError,
  type Limits,
  markArrivals,
  serverOptions,
  type TranscoderOptions,
  transcoder,
} from "connect-transcoder";
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from "fastify";
import type { Logger } from "pino";
import { createMetrics, type Metrics } from "../processes/metrics.ts";
import { type Auth, addAdmission } from "./auth.ts";
import type { Cors } from "./cors.ts";
import { neededMethods } from "./events/watched-services.ts";
import {
  countStreams,
  createRates,
  createShedding,
  keepResponses,
  type LimitsOptions,
  refuseWithoutMemory,
  type SheddingOptions,
} from "./limits.ts";
import { countDeprecated, logRequests, type RequestsOptions, recordRequests, traceRequests } from "./requests.ts";
import { answerUnknownRpc } from "./rpc-endpoint.ts";

/** Version of the HTTP interface, sent with every answer. */
export const API_VERSION = "1.0.0";

/** What the gateway chooses of the transcoder's options, and the document tells. */
export const TOLD_CHOICES = {
  codec: "exact",
  ignoreUnknown: true,
  maskFromBodyOnly: true,
  timeoutHeaders: ["X-Server-Timeout"],
} as const;

declare module "fastify" {
  interface FastifyContextConfig {
    /** Of a route that is served whatever host is named: probes ask by whatever address they know. */
    answersAnyHost?: boolean;
  }
}

/** Adds further routes to the gateway, in a Fastify scope of their own. */
export type GatewayPlugin = (app: FastifyInstance) => Promise<void>;

export interface GatewayOptions
  extends LimitsOptions,
    RequestsOptions,
    Pick<Runtime, "clock" | "random">,
    Pick<SheddingOptions, "services"> {
  readonly errors: CatalogueErrors;
  readonly log: Logger;
  readonly limits: Limits;
  readonly connections?: Partial<OnePortLimits>;
  /** Checks the `Host` of a request to a route that does not answer any host. By default every name is accepted. */
  readonly hosts?: { readonly check: HostCheck | undefined };
  readonly tls?: ServerTls | undefined;
  readonly deprecation?: DeprecationPolicy;
  readonly auth: Auth;
  /** Aborts when streams have to end, because the gateway stops. */
  readonly draining?: AbortSignal | undefined;
  readonly cors?: Cors | undefined;
  readonly metrics?: Metrics | undefined;
  /** What the gateway serves beside the operations: its document, health, the RPC endpoint. */
  readonly plugins?: readonly GatewayPlugin[];
}

/** Adds its hooks to Fastify, which calls hooks in the order in which they were added. */
type Layer = (app: FastifyInstance) => PromiseLike<unknown> | unknown;

/** Returns the gateway ready, but not listening. @throws Error when an annotation of a service can't be served */
export async function buildGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { log, auth, hosts, cors, connections, tls, limits, plugins = [], metrics = createMetrics() } = options;
  const served: TranscoderOptions = {
    ...options,
    apiVersion: API_VERSION,
    jsonNamesOnly: true,
    strict: true,
    pathFieldsFromPathOnly: true,
    ...TOLD_CHOICES,
    requireContentType: true,
    authorize: (request, { method }) => app.admit(request, ...neededMethods(request.originalUrl, method)),
    endOf: ({ ended }) => ended,
    callHeaders,
    answerDependsOn: ({ caller }) => caller,
  };
  const rates = createRates(options);
  const moreHeaders = (request: IncomingMessage) => ({ ...cors?.headers(request), ...rates.refused(request) });
  const { recorded, note, layer: noteRoutes } = recordRequests(metrics, options);
  const { early, letIn } = createShedding({ ...options, ...served, moreHeaders, onEarly: note });

  // What a request passes on its way from the port (`packages/rpc/http`) to its operation or RPC, as one list from top to
  // bottom. A request that is wrong in several ways is refused by the first layer that looks at one of them.
  // Before Fastify there are `recorded`, which refuses nothing, and `early`: 503, no room or no memory for an operation, by verb
  // and path alone.
  const hooks: readonly Layer[] = [
    noteRoutes, // refuses nothing
    keepResponses, // refuses nothing
    logRequests(log), // refuses nothing
    countDeprecated(options), // refuses nothing
    (app) => markArrivals(app, served), // refuses nothing; makes a record of what is thrown below
    traceRequests(options), // refuses nothing
    checkHosts(hosts), // 421; not even a preflight is answered to a page that comes by a host name of its own
    (app) => cors?.register(app), // 204: preflights; what is refused below can be read by pages
    refuseWithoutMemory, // 503
    rates.limit, // 429 for what asks for no operation; the others are counted when their caller is known
    unknownRpcs, // 404, as its RPC protocol has it
    (app) => app.register(transcoder, served), // 404, 405; 414, 431; 400 for `Host`; then `admit`, and what an operation asks
    ...plugins.map(inScope), // the RPC endpoint: 415 for gRPC, then `admit`
  ];

  const { clientErrorHandler: refuse, ...server } = serverOptions(served);
  const app: FastifyInstance = fastify({
    ...server,
    clientErrorHandler(error, socket) {
      behindAnswers(socket, () => refuse?.call(this, error, socket));
    },
    serverFactory: (listener) =>
      createOnePortServer(
        recorded(early(listener)),
        { ...defaultLimits, ...connections, ...portLimits(limits) },
        { tls, log },
      ),
    // Otherwise Fastify loads its JSON schema compilers, which no route needs.
    schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
    loggerInstance: log as FastifyBaseLogger,
    // A layer logs one line per request, after its answer was sent.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
  });
  addAdmission(app, auth, { letIn, count: rates.count, countStream: countStreams(options, metrics) });
  for (const add of hooks) await add(app);
  return app;
}

const inScope =
  (plugin: GatewayPlugin): Layer =>
  (app) =>
    app.register(plugin);

const unknownRpcs: Layer = (app) =>
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.is404 || !answerUnknownRpc(app, request, reply)) done();
  });

const checkHosts =
  (hosts: GatewayOptions["hosts"]): Layer =>
  (app) =>
    hosts &&
    app.addHook("onRequest", ({ raw, routeOptions }, _reply, done) => {
      const refusal = routeOptions.config.answersAnyHost ? undefined : hosts.check?.(raw);
      done(refusal === undefined ? undefined : new HttpError("MISDIRECTED_REQUEST", `Host: ${refusal}`));
    });

/** The port accepts larger requests than the API, so that one that is too large gets the API's own error. */
const portLimits = ({ requestMs, urlBytes, headerBytes }: Limits) => ({
  sniffMs: requestMs,
  requestMs,
  headerBytes: urlBytes + headerBytes,
});

function refuseSchema(): never {
  throw new Error("A route has a JSON schema: the contract says what requests and answers are.");
}
