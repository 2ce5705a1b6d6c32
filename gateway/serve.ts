/** Puts the gateway together: transports, both endpoints, the console, the document, health. */
import type { AddressInfo } from "node:net";
import type { Transport } from "@connectrpc/connect";
import { createAdmission, withAdmission } from "@petstore/rpc/admission/admission";
import { createSeen } from "@petstore/rpc/client/layers";
import { isLoopback, origin } from "@petstore/rpc/http/address";
import { callerAddress, createHostCheck } from "@petstore/rpc/http/hosts";
import { listen } from "@petstore/rpc/http/listen";
import { seededRandom } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import { type Running, STOP_LIMIT_MS } from "@petstore/runtime/lifecycle";
import { effectiveDates, logUnknownValues, operationsOf } from "connect-transcoder";
import { errorOptions, errors } from "#errors";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { STARTED } from "../processes/admin.ts";
import { type Common, openCommon, type PathTo, pathsOverNetwork } from "../processes/common.ts";
import { asksNobody } from "../processes/config.ts";
import { listenAdvice } from "../processes/listen-advice.ts";
import { METRICS } from "../processes/metrics.ts";
import { buildGateway } from "./app.ts";
import { authOf } from "./auth.ts";
import { createClosing } from "./closing.ts";
import type { GatewayConfig } from "./config.ts";
import { petstoreConsole } from "./console.ts";
import { cors } from "./cors.ts";
import { createDeprecatedCalls } from "./deprecated-calls.ts";
import { docs } from "./docs.ts";
import { eventTransport } from "./events/watch-events.ts";
import { createFaults, type Faults, setFaultsFile } from "./faults.ts";
import { createReadiness, health } from "./health.ts";
import { createRateLimits, limitFailedCredentials } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";
import { publicServices } from "./services.ts";

/** Runs the gateway as a process of its own. */
export async function serve(config: GatewayConfig, stack: AsyncDisposableStack): Promise<Running> {
  const common = await openCommon(config, stack);
  const { lameDuckMs } = config;
  const url = await openGateway(config, { ...common, pathTo: pathsOverNetwork(config, common, stack) }, stack);
  return { log: common.log, url, stopLimitMs: lameDuckMs + STOP_LIMIT_MS };
}

export interface GatewayParts
  extends Pick<Common, "log" | "time" | "tracing" | "admin" | "metrics" | "authentication" | "tls"> {
  readonly pathTo: PathTo;
  /** By default there are those of FAULTS_FILE. */
  readonly faults?: Faults | undefined;
}

/** Opens the gateway, ready to take requests; the stack closes it. Resolves to its address. */
export async function openGateway(
  config: GatewayConfig,
  { log, time, tracing, admin, metrics, authentication, tls, pathTo, ...parts }: GatewayParts,
  stack: AsyncDisposableStack,
): Promise<string> {
  const { basePath, limits, deprecation, lameDuckMs, rate } = config;
  checkDeprecation(config);
  const addressOf = callerAddress(config.trustedProxies);
  const withSeen = createSeen();
  const services = publicServices.map(({ name, desc }) => {
    const { replicas, ...all } = pathTo(name);
    const admission = createAdmission(time);
    metrics.read(METRICS.limit, (tell) => tell(admission.limit(), "gateway", name));
    metrics.read(METRICS.running, (tell) => tell(admission.underWay(), "gateway", name));
    const transport = withAdmission(withSeen(all), admission, errors);
    return { name, desc, transport, replicas, admission };
  });
  const transports = new Map(services.map(({ desc, transport }) => [desc.typeName, transport]));
  const watching = { transports, basePath, tellUnknown: logUnknownValues(log), log, tracing, ...time };
  const events = { desc: EventService, transport: eventTransport(watching) };
  const { faultsFile, faultsSeed } = config;
  const seeded = () => createFaults(config, { ...time, random: seededRandom(faultsSeed) });
  const faults = parts.faults ?? (faultsFile === undefined ? undefined : seeded());
  if (faults && faultsFile !== undefined) {
    await setFaultsFile(faults, faultsFile);
    log.warn({ path: faultsFile }, "calls fail on demand: FAULTS_FILE is set");
  }
  const struck = <S extends { readonly transport: Transport }>(service: S): S =>
    faults ? { ...service, transport: faults.strike(service.transport) } : service;
  const called = services.map(struck);
  const draining = new AbortController();
  const closing = createClosing({ lameDuckMs, endStreams: () => draining.abort(), ...time });
  const readiness = createReadiness({ services, isAccepting: closing.isAccepting, ...time });
  admin.routes.set("GET /readyz", readiness);
  const deprecatedCalls = createDeprecatedCalls(deprecation, time.wallClock);
  admin.routes.set("GET /deprecated", () => ({ status: 200, body: deprecatedCalls.report() }));
  const hosts = { check: config.allowedHosts && createHostCheck(config.allowedHosts) };
  const app = await buildGateway({
    services: [...called, struck(events)],
    draining: draining.signal,
    errors: errorOptions,
    log,
    tracing,
    ...time,
    limits,
    auth: authOf(authentication, limitFailedCredentials(addressOf, time)),
    // A key may have a rate of its own.
    rates: rate || authentication ? createRateLimits(rate, time) : undefined,
    addressOf,
    connections: config.connections,
    streams: config.streams,
    hosts,
    tls,
    basePath,
    deprecation,
    deprecatedCalls,
    cors: cors(config.corsOrigins),
    metrics,
    plugins: [
      petstoreConsole({ basePath }),
      // The document is built on request: at start it would take a tenth of the gateway's start-up time.
      docs(basePath, async () => (await import("./openapi.ts")).petstoreDocument({ ...config, publicUrl })),
      health(basePath, readiness),
      rpcEndpoint({ basePath, services: called, limits, draining: draining.signal, ...time }),
    ],
  });
  stack.defer(() => closing.close(app));
  await app.ready();
  const port = await listen(app.server, config, listenAdvice);
  const localUrl = origin(config.host, port, tls && "https");
  const { publicUrl = localUrl } = config;
  // The socket of LISTEN_FDS is bound to an address that its creator chose, whatever HOST says.
  const { address = config.host } = app.server.address() as AddressInfo;
  if (config.loopbackOnly && !isLoopback(address)) {
    app.server.close(); // before it accepts waiting connections, and without a lame duck
    throw asksNobody(`the socket of LISTEN_FDS, on ${address},`, "gateway", "bind it to 127.0.0.1");
  }
  if (!authentication && !isLoopback(address))
    log.warn(
      "callers on other machines need no credentials: everybody may do everything, and all share one space of idempotency " +
        "keys, in which equal keys meet. AUTH_MODE tells callers apart.",
    );
  if (config.descriptor !== undefined && !config.allowedHosts && isLoopback(address)) hosts.check = createHostCheck([]);
  admin.routes.set("GET /startupz", () => STARTED);
  return localUrl + basePath;
}

/** Checks that the deprecation dates from the environment are consistent with those of the contract. */
function checkDeprecation({ deprecation }: GatewayConfig): void {
  const { deprecatedAt, sunsetAt } = deprecation;
  if (deprecatedAt === undefined && sunsetAt === undefined) return;
  for (const operation of publicServices.flatMap(({ desc }) => operationsOf(desc))) {
    try {
      if (operation.deprecation) effectiveDates(operation.deprecation, deprecation);
    } catch (error) {
      throw new ConfigError([`${(error as Error).message} Change SUNSET_AT or DEPRECATED_AT.`]);
    }
  }
}
