/**
 * The settings that several kinds of process read from their environment, in two pure steps: `readEnvironment` checks
 * each variable by itself; `processConfig` then builds the configuration and checks what concerns several variables
 * together. The settings of one kind are in `gateway/config.ts`, `services/config.ts` and `launcher/config.ts`.
 */
import { isIP, isIPv6 } from "node:net";
import { isLoopback, origin } from "@petstore/rpc/http/address";
import type { Network } from "@petstore/rpc/http/hosts";
import { defaultLimits, defaultStreamLimits } from "@petstore/rpc/http/limits";
import {
  ConfigError,
  duration,
  type Environment,
  type Format,
  format,
  host,
  integer,
  list,
  mongodbUri,
  oneOf,
  optional,
  path,
  type Values,
  withDefault,
} from "@petstore/runtime/environment";
import { logLevels } from "@petstore/runtime/log-levels";
import type { Warning } from "@petstore/runtime/settings";
import { traceConfig, traceSettings } from "@petstore/trace/settings";
import { authConfig, authSettings, tlsConfig, tlsSettings } from "./credentials.ts";
import {
  addressSettings,
  adminDistance,
  adminPortOf,
  instanceOf,
  type ProcessName,
  portOf,
  processNames,
  type Replicas,
  replicasOf,
  type ServiceName,
} from "./names.ts";
import { openFilesLimit, withinOpenFiles } from "./open-files.ts";

/** What services and the gateway have in common. */
export type ProcessConfig = Readonly<ReturnType<typeof processConfig>>;

/** Settings of the gateway. The launcher waits that much longer for its end. */
export const lameDuckSettings = { LAME_DUCK: withDefault(duration("0s", "60s"), 500) };

/** Settings of the services. The launcher also checks that the directory can be written. */
export const storeSettings = {
  DATA_DIR: withDefault(path, "data"),
  MONGODB_URI: optional(mongodbUri),
  EVENTS_RETENTION: optional(duration("1m", "30d")),
};

/** What of `storeSettings` has no effect beside the others. */
export function storeWarnings({ EVENTS_RETENTION, MONGODB_URI, MONGODB_URI_FILE }: Environment): readonly Warning[] {
  const text =
    "EVENTS_RETENTION has no effect with MONGODB_URI: MongoDB keeps changes as long as its oplog reaches (docs/store.md).";
  const isIdle = EVENTS_RETENTION?.trim() && (MONGODB_URI?.trim() || MONGODB_URI_FILE?.trim());
  return isIdle ? [{ name: "EVENTS_RETENTION", text }] : [];
}

const MAX_REPLICAS = 64;
const MAX_PORT = 65_535;

const processName = oneOf(...processNames);
const count = integer(1, MAX_REPLICAS);
const replicas: Format<Replicas> = format(
  `processes with how many there are to be of each, such as gateway:4,pet:2 (of ${processNames.join(", ")}, ` +
    `each named once; 1 to ${MAX_REPLICAS})`,
  (text) => {
    const all = new Map<ProcessName, number>();
    for (const item of text.split(",")) {
      const [name = "", number = "", ...rest] = item.trim().split(":");
      const [known, many] = [processName.read(name), count.read(number)];
      if (!known || !many || rest.length > 0 || all.has(known)) return undefined;
      all.set(known, many);
    }
    return all;
  },
);

const network: Format<Network> = format("an IP address or a network such as 10.0.0.0/8", (text) => {
  const [address = "", bits, more] = text.split("/");
  const most = isIPv6(address) ? 128 : 32;
  const isNetwork = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
  if (isIP(address) === 0 || !isNetwork || more !== undefined) return undefined;
  return { address, bits: bits === undefined ? most : Number(bits) };
});

/** Addresses and networks of the proxies that are trusted. */
export const proxies: Format<readonly Network[]> = list(network);

const port = integer(0, MAX_PORT);
const adminPort: Format<number | "off"> = format(
  `a port from 0 to ${MAX_PORT} (0 takes one that is free), or off for none`,
  (text) => (text === "off" ? text : port.read(text)),
);

/** The variables that services and the gateway have in common. */
export const processSettings = {
  REPLICAS: withDefault(replicas, new Map()),
  REPLICA: optional(integer(1, MAX_REPLICAS)),
  HOST: withDefault(host, "127.0.0.1"),
  PORT: optional(port),
  PORT_BASE: withDefault(integer(1024, 65_536 - processNames.length), 8080),
  ADMIN_HOST: withDefault(host, "127.0.0.1"),
  ADMIN_PORT: optional(adminPort),
  ...addressSettings,
  ALLOWED_HOSTS: optional(list(host)),
  ...tlsSettings,
  ...traceSettings,
  ...authSettings,
  LOG_LEVEL: withDefault(oneOf(...logLevels), "info"),
  LOG_FORMAT: optional(oneOf("pretty", "json")),
  ALLOW_UNAUTHENTICATED: optional(oneOf("beyond-loopback")),
  MAX_CONNECTIONS: withDefault(integer(10, 100_000), defaultLimits.connections),
  MAX_CONNECTIONS_PER_ADDRESS: optional(integer(1, 100_000)),
  MAX_STREAMS: withDefault(integer(1, 100_000), defaultStreamLimits.streams),
  MAX_STREAMS_PER_CALLER: withDefault(integer(1, 100_000), defaultStreamLimits.streamsPerCaller),
  TRUST_PROXY: withDefault(proxies, []),
  LINK: withDefault(oneOf("on", "off"), "on"),
  WRITE_TIMEOUT: withDefault(duration("1s", "10m"), defaultLimits.writeMs),
};

/**
 * The error for a setting (`what`) that would let other machines call a process without credentials, and what to do
 * `instead`.
 */
export const asksNobody = (what: string, name: ProcessName, instead: string): ConfigError =>
  new ConfigError([
    `${what} would let other machines call ${name} without credentials: ask for them with AUTH_MODE, ` +
      `${instead}, or set ALLOW_UNAUTHENTICATED=beyond-loopback if that is what you want.`,
  ]);

/**
 * The common part of a configuration. `terminal`: whether the log goes to a terminal. `openFiles`: how many the process may
 * have. Throws `ConfigError`.
 */
export function processConfig(
  values: Values<typeof processSettings>,
  name: ProcessName,
  terminal: boolean,
  openFiles = openFilesLimit(),
) {
  const auth = authConfig(values);
  const loopbackOnly = auth === undefined && values.ALLOW_UNAUTHENTICATED === undefined;
  if (loopbackOnly && !isLoopback(values.HOST)) throw asksNobody(`HOST=${values.HOST}`, name, "use HOST=127.0.0.1");
  const { REPLICAS, REPLICA = 1, PORT_BASE } = values;
  const lastOf = (each: ProcessName) =>
    values.ADMIN_PORT === undefined
      ? adminPortOf(each, PORT_BASE, replicasOf(REPLICAS, each), REPLICAS)
      : portOf(each, PORT_BASE, replicasOf(REPLICAS, each));
  const last = Math.max(...processNames.map(lastOf));
  if (last > MAX_PORT)
    throw new ConfigError([`PORT_BASE=${PORT_BASE} is too high: the last port would be ${last}. Choose a lower one.`]);
  const count = replicasOf(REPLICAS, name);
  if (REPLICA > count)
    throw new ConfigError([
      `REPLICA=${REPLICA} is wrong: it can be ${count} at most, for REPLICAS asks for ${count} of ${name}.`,
    ]);
  const { tls, internalTls } = tlsConfig(values, name);
  // Behind a proxy all callers have one address.
  const perAddress = values.TRUST_PROXY.length > 0 ? undefined : defaultLimits.connectionsPerAddress;
  const { MAX_CONNECTIONS_PER_ADDRESS = perAddress } = values;
  const sockets = withinOpenFiles({ ...values, MAX_CONNECTIONS_PER_ADDRESS }, openFiles);
  const local = (service: ServiceName) =>
    Array.from({ length: replicasOf(REPLICAS, service) }, (_, i) => {
      const address = origin(values.HOST, portOf(service, PORT_BASE, i + 1), (tls ?? internalTls) && "https");
      if (URL.canParse(address)) return address;
      throw new ConfigError([
        `HOST=${values.HOST} has a zone, which no URL can name: use an address without one, or HOST=:: for all of them.`,
      ]);
    });
  return {
    name,
    /** Its name in the log. */
    instance: instanceOf(name, REPLICA, count),
    host: values.HOST,
    /** 0 lets the system choose one. */
    port: values.PORT ?? portOf(name, PORT_BASE, REPLICA),
    /** Where its admin port listens, see `admin.ts`; undefined for none. */
    admin: adminOf(values, adminPortOf(name, PORT_BASE, REPLICA, REPLICAS)),
    /** Where all replicas of the services are reached, without a slash at the end. */
    urls: {
      pet: values.PET_URL ?? local("pet"),
      category: values.CATEGORY_URL ?? local("category"),
      order: values.ORDER_URL ?? local("order"),
      inventory: values.INVENTORY_URL ?? local("inventory"),
    },
    /** What a request may name besides localhost and loopback addresses. Other machines may call this one by any name. */
    allowedHosts: values.ALLOWED_HOSTS ?? (isLoopback(values.HOST) ? [] : undefined),
    /** By which the processes of one petstore know each other, if not by certificates. */
    internalSecret: values.INTERNAL_SECRET,
    /** The certificate of its port, and the authority for those that it asks clients for. */
    tls,
    /** The certificate by which other processes know it for one of the petstore's own, and the authority for theirs. */
    internalTls,
    /** One of them marks a certificate as that of a process of the petstore. */
    peerNames: values.INTERNAL_TLS_NAMES,
    /** How external callers authenticate; undefined if they need not. */
    auth,
    /** They need not, and ALLOW_UNAUTHENTICATED does not extend that to other machines. */
    loopbackOnly,
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT ?? (terminal ? ("pretty" as const) : ("json" as const)),
    /** Where it sends the spans of requests, and of which; undefined where traces are off. */
    traces: traceConfig(values),
    /** Whose forwarding headers are trusted. */
    trustedProxies: values.TRUST_PROXY,
    connections: {
      connections: sockets.MAX_CONNECTIONS,
      connectionsPerAddress: sockets.MAX_CONNECTIONS_PER_ADDRESS,
      writeMs: values.WRITE_TIMEOUT,
    },
    streams: { streams: sockets.MAX_STREAMS, streamsPerCaller: values.MAX_STREAMS_PER_CALLER },
    /** Says that these limits are lower than the settings, and what to do about it. */
    fewFiles: sockets.warning,
    /** Whether it calls the services over links, or each call is a plain RPC. */
    link: values.LINK === "on",
  };
}

/** `usual` is the admin port of a process that was given neither ADMIN_PORT nor a PORT of its own. */
function adminOf(
  { ADMIN_HOST: host, ADMIN_PORT, PORT, REPLICAS }: Values<typeof processSettings>,
  usual: number,
): { readonly host: string; readonly port: number } | undefined {
  // A port by chance has no neighbour that is known to be free.
  const port = ADMIN_PORT ?? (PORT === undefined ? usual : PORT && PORT + adminDistance(REPLICAS));
  if (port === "off") return undefined;
  if (port <= MAX_PORT) return { host, port };
  throw new ConfigError([
    `PORT=${PORT} leaves no room for the admin port above it: set ADMIN_PORT, or ADMIN_PORT=off.`,
  ]);
}
