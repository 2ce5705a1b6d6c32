/** What services and the gateway open alike: log, traces, admin port, credentials, certificates, and the way to the services' processes. */
import { CONTENT_TYPE, formFor } from "@petstore/metrics/exposition";
import { measureNode } from "@petstore/metrics/node";
import { openAuthentication } from "@petstore/rpc/auth/authentication";
import { SECRET_HEADER } from "@petstore/rpc/call";
import { createServiceTransport, type ServiceTransport } from "@petstore/rpc/client/pipeline";
import type { Replica } from "@petstore/rpc/client/replica";
import { openTls } from "@petstore/rpc/tls/certificates";
import { realTime } from "@petstore/runtime/clock";
import { createLogger } from "@petstore/runtime/log";
import type { InForce } from "@petstore/runtime/settings";
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_NAMESPACE } from "@petstore/trace/names";
import type { TraceConfig } from "@petstore/trace/settings";
import { openTracing, type TracingConfig } from "@petstore/trace/tracing";
import { addLogLevel, addProfiles } from "./admin/looks.ts";
import { openAdmin } from "./admin.ts";
import type { ProcessConfig } from "./config.ts";
import { errorSource, errors } from "./errors.ts";
import { createMetrics } from "./metrics.ts";
import type { ServiceName } from "./names.ts";

/** Time and chance. */
export type Time = typeof realTime;

export type Common = Awaited<ReturnType<typeof openCommon>>;

/**
 * The stack closes it. Throws ConfigError if a file of the configuration can't be used. `time` is what all of the process goes
 * by.
 */
export async function openCommon(
  config: ProcessConfig & { readonly settings: Readonly<Record<string, InForce>> },
  stack: AsyncDisposableStack,
  time: Time = realTime,
) {
  const { instance, logLevel, logFormat, auth } = config;
  const log = createLogger({ service: instance, level: logLevel, format: logFormat, secrets: [SECRET_HEADER] });
  if (config.fewFiles !== undefined) log.warn(config.fewFiles);
  const tracing = await openTracing(ofInstance(config.traces, instance), { ...time, log });
  stack.defer(() => tracing?.close());
  const metrics = createMetrics();
  if (config.admin) measureNode(metrics);
  const admin = await openAdmin(config, log, stack);
  admin.routes.set("GET /metrics", (_body, _query, accept) => {
    const form = formFor(accept);
    return { status: 200, text: metrics.text(form), type: CONTENT_TYPE[form] };
  });
  admin.routes.set("GET /settings", () => ({ status: 200, body: config.settings }));
  addLogLevel(admin.routes, log, time.wallClock);
  addProfiles(admin.routes);
  const asking = { errors, realm: errorSource.domain, log, ...time };
  const authentication = await openAuthentication(auth, asking, stack);
  return { log, time, tracing, admin, metrics, authentication, ...(await openTls(config, { ...time, log }, stack)) };
}

/** The way to a service, and what `/readyz` asks of it. */
export type PathTo = (service: ServiceName) => Pick<ServiceTransport, "unary" | "stream"> & {
  replicas(): readonly Pick<Replica, "isServing">[];
};

/** The ways to services that are processes of their own; the stack closes them. */
export const pathsOverNetwork =
  (config: ProcessConfig, { log, time, tracing, metrics, certificates }: Common, stack: AsyncDisposableStack): PathTo =>
  (service) => {
    const secret = config.internalSecret?.reveal();
    const { link, urls } = config;
    const options = {
      urls: urls[service],
      secret,
      certificates,
      link,
      log,
      errors,
      tracing,
      callEnded: metrics.called,
      ...time,
    };
    const transport = createServiceTransport(options);
    stack.defer(() => transport.close());
    return transport;
  };

/** What the traces of a process say of it. It is called `instance`: as "pet-2" is one of the service "pet". */
export const ofInstance = (config: TraceConfig | undefined, instance: string): TracingConfig | undefined =>
  config && {
    ...config,
    scope: "petstore",
    resource: {
      [ATTR_SERVICE_NAMESPACE]: "petstore",
      [ATTR_SERVICE_NAME]: instance.replace(/-\d+$/, ""),
      [ATTR_SERVICE_INSTANCE_ID]: instance,
      ...config.resource,
    },
  };
