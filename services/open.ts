/** Puts one service together: store, peers, handlers, server, workers; and all four with the ways between them in memory. */
import { pipeline } from "@petstore/rpc/client/layers";
import { callerAddress } from "@petstore/rpc/http/hosts";
import { defaultLimits } from "@petstore/rpc/http/limits";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import { createDispatcher } from "@petstore/rpc/server/dispatcher";
import { createHealth, healthService } from "@petstore/rpc/server/health";
import { startRpcServer } from "@petstore/rpc/server/server";
import { withSpans } from "@petstore/rpc/traced";
import { every } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import { NO_RESTART, onCommand, type Report, type WaitsFor } from "@petstore/runtime/lifecycle";
import { openStore, storesOfOneProcess } from "@petstore/store/open";
import { NotWritable, UnsupportedFormat, UnusableServer } from "@petstore/store/port";
import { errors } from "#errors";
import manifest from "../package.json" with { type: "json" };
import type { Common, PathTo } from "../processes/common.ts";
import { listenAdvice } from "../processes/listen-advice.ts";
import { METRICS } from "../processes/metrics.ts";
import type { ServiceName } from "../processes/names.ts";
import type { ServiceConfig } from "./config.ts";
import { createService } from "./create.ts";
import { canServe, observed, storeFailureOf } from "./observed-store.ts";
import { createCensus, showService } from "./records/census.ts";
import { withFormats } from "./records/format-marks.ts";
import type { Deps } from "./records/module.ts";
import { RETENTION } from "./records/retention.ts";
import { addStored } from "./stored.ts";

/** Documents that a worker lists at once. */
const BATCH = 100;
/** How often the process checks whether its store is ready, in milliseconds. */
const READINESS_MS = 2_000;
/** Pause between two looks at what is pending, and between two counts of all else that is stored, in milliseconds. */
const CENSUS_MS = 10_000;
/** Pause between two looks for what breaks an invariant, and how long after each pause one begins, in milliseconds. */
const VIOLATIONS_MS = 50_000;
const VIOLATIONS_AFTER_MS = 10_000;

export type OpenService = Awaited<ReturnType<typeof openService>>;

export interface ServiceOptions
  extends Pick<Common, "log" | "time" | "admin" | "tracing" | "metrics" | "authentication" | "tls"> {
  readonly pathTo: PathTo;
  readonly waitsFor: WaitsFor;
  /** By default a store of its own. */
  readonly openStore?: typeof openStore;
  /** By default the one that CRASH_AT or the test that started the process names. */
  readonly failpoint?: Deps["failpoint"];
}

/** Opens a service that does not listen yet; the stack closes it. */
export async function openService(
  config: ServiceConfig,
  {
    log,
    time,
    admin,
    tracing,
    metrics,
    authentication,
    tls,
    pathTo,
    waitsFor,
    openStore: open = openStore,
    failpoint = failpointOf(config),
  }: ServiceOptions,
  stack: AsyncDisposableStack,
) {
  const { name, host, port } = config;
  const onFatal = (err: unknown) => {
    // A restart would find an empty directory, and begin anew; or records that this version does not know.
    const isFinal = err instanceof NotWritable || err instanceof UnsupportedFormat;
    log.fatal({ err }, isFinal ? err.message : "the store can't be trusted any more, the process ends");
    process.exit(isFinal ? NO_RESTART : 1);
  };
  const onCorrupt = (collection = "") => metrics.corrupt.of(collection).add();
  const opened = await open(
    { ...config, service: name },
    { ...time, log, onFatal, onCorrupt, waitsFor, version: manifest.version },
  ).catch(refuse);
  stack.defer(() => opened.close());
  const system = config.mongodbUri === undefined ? "sqlite" : "mongodb";
  const formats = withFormats(observed(opened, { system, namespace: name }, metrics, tracing), {
    service: name,
    version: manifest.version,
    ...time,
  });
  const { store } = formats;
  if (opened.inspection) addStored(admin.routes, name, config.dataDir, opened.inspection, formats.raise);
  const retention = { ...RETENTION, eventsMs: config.eventsRetentionMs };
  const deps: Deps = { store, log, tracing, ...time, retention, failpoint };
  const service = await createService(name, deps, pathTo);
  const health = createHealth(service.implementations.map(({ desc }) => desc.typeName));
  const dispatcher = createDispatcher([...service.implementations, healthService(health)], {
    deps,
    secret: config.internalSecret?.reveal(),
    authentication,
    errors,
    storeFailureOf,
    streamLimits: config.streams,
    callEnded: metrics.served,
  });
  const census = createCensus(service.countable, deps);
  for (const end of showService(metrics, name, dispatcher.load, service.countable, census.found)) stack.defer(end);

  /** Takes calls from outside, and starts the background work. Resolves to the address. */
  async function listen(): Promise<string> {
    // Workers stop after the server, and before the store is closed.
    const workers = stack.use(new AsyncDisposableStack());
    const server = await startRpcServer({
      host,
      port,
      log,
      dispatcher,
      health,
      limits: {
        ...defaultLimits,
        ...config.connections,
        // More than one gateway may have open: one stream too many has to arrive to be refused, and not wait forever at the
        // caller.
        peerStreams: 2 * Math.max(defaultLimits.peerStreams, config.streams.streams),
      },
      allowedHosts: config.allowedHosts,
      addressOf: callerAddress(config.trustedProxies),
      tls,
      listenAdvice,
    });
    stack.use(server);
    // Workers first finish, at other services, what the last process left unfinished. So they wait until this process has its
    // port: if another process has it, the other services may belong to another petstore, with other data.
    start(workers);
    return server.url;
  }

  /** Starts the background work: by itself for whom nobody calls from outside. */
  function start(workers = stack): void {
    const begin = (name: string, everyMs: number, run: (stop: AbortSignal) => Promise<unknown>) => {
      const failures = metrics.workerFailures.of(name);
      const counted = async (stop: AbortSignal) => {
        await run(stop).catch((error) => {
          if (error instanceof UnsupportedFormat) onFatal(error);
          if (!stop.aborted) failures.add();
          throw error;
        });
      };
      workers.use(every(everyMs, name, counted, deps));
    };
    for (const { name, everyMs, run } of [...service.workers, formats.worker])
      begin(name, everyMs, (stop) => run(BATCH, stop));
    // Apart, for a count may take minutes, and an alert waits for what is pending.
    begin(`${name}.pending`, CENSUS_MS, census.look);
    begin(`${name}.census`, CENSUS_MS, census.run);
    if (name === "inventory" && opened.inspection) begin(`${name}.violations`, VIOLATIONS_MS, watchViolations());
    const followStore = async () => health.set(await canServe(store, deps));
    stack.use(every(READINESS_MS, `${name}.readiness`, followStore, deps));
  }

  /** One service looks at what all have stored. */
  function watchViolations() {
    let figures: ReadonlyMap<string, number> = new Map();
    const end = metrics.read(METRICS.violations, (tell) => {
      for (const [invariant, count] of figures) tell(count, invariant);
    });
    stack.defer(end);
    return async (stop: AbortSignal) => {
      await time.sleep(VIOLATIONS_AFTER_MS, stop);
      const { countViolations } = await import("../doctor/watching.ts");
      figures = await countViolations(config, time, stop).catch(() => new Map());
    };
  }

  /** Does what background work there is now. Resolves to how much it was. */
  async function work(): Promise<number> {
    const done = await Promise.all(service.workers.map(({ run }) => run(BATCH)));
    return done.reduce((sum, count) => sum + count, 0);
  }
  // `dispatcher` takes calls of the same process, and `file` is that of the store, if it has one.
  return { dispatcher, health, file: store.file, listen, start: () => start(), work };
}

/** `openService` for several services of one process, whose stores share what they can. */
export function servicesOfOneProcess(): typeof openService {
  const openStore = storesOfOneProcess();
  return (config, options, stack) => openService(config, { ...options, openStore }, stack);
}

/** The ways to services of the same process. These are opened one after another, so each is looked up when it is called. */
export function pathsInMemory(
  of: { readonly services: ReadonlyMap<ServiceName, OpenService> },
  { time, tracing, metrics }: Pick<Common, "time" | "tracing" | "metrics">,
): PathTo {
  const find = (name: ServiceName) => {
    const found = of.services.get(name);
    if (!found) throw new Error(`${name} is not open yet.`);
    return found;
  };
  return (name) => {
    const service = inProcessTransport(() => find(name).dispatcher);
    return {
      ...pipeline(withSpans(service, tracing), { errors, callEnded: metrics.called, ...time }),
      replicas: () => [{ isServing: async () => find(name).health.isServing() }],
    };
  };
}

/** Reports a problem of the connection string as one of the variable that holds it. */
function refuse(error: unknown): never {
  throw error instanceof UnusableServer ? new ConfigError([`MONGODB_URI ${error.problem}.`]) : error;
}

/** The process kills itself (SIGKILL) at the failpoint that `CRASH_AT` names, or that the test names later. */
function failpointOf({ crashAt }: ServiceConfig): Deps["failpoint"] {
  let at = crashAt;
  onCommand("crash", (command) => {
    at = command.at;
    process.send?.({ type: "armed" } satisfies Report);
  });
  return (name) => {
    if (name === at) process.kill(process.pid, "SIGKILL");
  };
}
