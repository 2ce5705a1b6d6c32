/**
 * The settings that several kinds of process read from their environment, in two pure steps: `readEnvironment` checks
 * each variable by itself; `processConfig` then builds the configuration and checks what concerns several variables
 * together. The settings of one kind are in `gateway/config.ts`, `services/config.ts` and `launcher/config.ts`.
 */
import type { AuthConfig } from "@petstore/rpc/auth/open";
import { origin } from "@petstore/rpc/http/address";
import { isLoopback } from "@petstore/rpc/http/allowed-hosts";
import type { Network } from "@petstore/rpc/http/caller-address";
import { defaultLimits, type OnePortLimits } from "@petstore/rpc/http/limits";
import { defaultStreamLimits, type StreamLimits } from "@petstore/rpc/server/open-streams";
import type { CertificateFiles } from "@petstore/rpc/tls/certificates";
import {
  ConfigError,
  duration,
  type Environment,
  host,
  integer,
  type Kind,
  kind,
  list,
  mongodbUri,
  oneOf,
  optional,
  path,
  type Secret,
  type Values,
  withDefault,
} from "@petstore/runtime/environment";
import type { LogFormat } from "@petstore/runtime/log";
import { type LogLevel, logLevels } from "@petstore/runtime/log-levels";
import type { Warning } from "@petstore/runtime/misspelled";
import { authConfig, authSettings } from "./auth.ts";
import {
  addressSettings,
  instanceOf,
  type ProcessName,
  portOf,
  processNames,
  type Replicas,
  replicasOf,
  type ServiceName,
} from "./names.ts";
import { openFilesLimit, withinOpenFiles } from "./open-files.ts";
import { proxies } from "./proxies.ts";
import { tlsConfig, tlsSettings } from "./tls.ts";

/** What services and the gateway have in common. */
export interface ProcessConfig {
  readonly name: ProcessName;
  /** Its name in the log, see `instanceOf`. */
  readonly instance: string;
  readonly host: string;
  /** 0 lets the system choose one. */
  readonly port: number;
  /** Where the services are reached: the addresses of all replicas of each, without a slash at the end. */
  readonly urls: Readonly<Record<ServiceName, readonly string[]>>;
  /** The host names that a request may have, besides localhost and loopback addresses; undefined when it may have any. */
  readonly allowedHosts: readonly string[] | undefined;
  /** The secret by which the processes of one petstore know each other, if not by certificates. */
  readonly internalSecret: Secret | undefined;
  /**
   * The certificate of its port, and the authority for the client certificates that it asks for; undefined for a port
   * without TLS.
   */
  readonly tls: CertificateFiles | undefined;
  /**
   * The certificate by which other processes know it for one of the petstore's own, and the authority that verifies
   * theirs.
   */
  readonly internalTls: CertificateFiles | undefined;
  /** The names that mark the petstore's own processes: their certificates have one of these. */
  readonly peerNames: readonly string[];
  /** How external callers authenticate; undefined when they need not. */
  readonly auth: AuthConfig | undefined;
  /** Callers need not authenticate, and ALLOW_UNAUTHENTICATED does not extend that to other machines. */
  readonly loopbackOnly: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Addresses and networks of the proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly Network[];
  readonly connections: Pick<OnePortLimits, "connections" | "connectionsPerAddress" | "writeMs">;
  /** How many streams may be open, such as those that watch for changes. */
  readonly streams: StreamLimits;
  /** Says that these limits are lower than the settings, and what to do about it. */
  readonly fewFiles: string | undefined;
  /** Whether it calls the services over links, or each call is a plain RPC. */
  readonly link: boolean;
}

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

const oneKind = oneOf(...processNames);
const count = integer(1, MAX_REPLICAS);
const replicas: Kind<Replicas> = kind(
  `processes with how many there are to be of each, such as gateway:4,pet:2 (of ${processNames.join(", ")}, ` +
    `each named once; 1 to ${MAX_REPLICAS})`,
  (text) => {
    const all = new Map<ProcessName, number>();
    for (const item of text.split(",")) {
      const [name = "", number = "", ...rest] = item.trim().split(":");
      const [known, many] = [oneKind.read(name), count.read(number)];
      if (!known || !many || rest.length > 0 || all.has(known)) return undefined;
      all.set(known, many);
    }
    return all;
  },
);

/** The variables that services and the gateway have in common. */
export const processSettings = {
  REPLICAS: withDefault(replicas, new Map()),
  REPLICA: optional(integer(1, MAX_REPLICAS)),
  HOST: withDefault(host, "127.0.0.1"),
  PORT: optional(integer(0, 65_535)),
  PORT_BASE: withDefault(integer(1024, 65_536 - processNames.length), 8080),
  ...addressSettings,
  ALLOWED_HOSTS: optional(list(host)),
  ...tlsSettings,
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
): ProcessConfig {
  const auth = authConfig(values);
  const loopbackOnly = auth === undefined && values.ALLOW_UNAUTHENTICATED === undefined;
  if (loopbackOnly && !isLoopback(values.HOST)) throw asksNobody(`HOST=${values.HOST}`, name, "use HOST=127.0.0.1");
  const { REPLICAS, REPLICA = 1, PORT_BASE } = values;
  const highest = Math.max(...processNames.map((each) => portOf(each, PORT_BASE, replicasOf(REPLICAS, each))));
  if (highest > MAX_PORT) {
    throw new ConfigError([
      `PORT_BASE=${PORT_BASE} is too high for so many REPLICAS: the last of them would have port ${highest}. Choose a lower one.`,
    ]);
  }
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
    instance: instanceOf(name, REPLICA, count),
    host: values.HOST,
    port: values.PORT ?? portOf(name, PORT_BASE, REPLICA),
    urls: {
      pet: values.PET_URL ?? local("pet"),
      category: values.CATEGORY_URL ?? local("category"),
      order: values.ORDER_URL ?? local("order"),
      inventory: values.INVENTORY_URL ?? local("inventory"),
    },
    // Other machines may call this one by any name.
    allowedHosts: values.ALLOWED_HOSTS ?? (isLoopback(values.HOST) ? [] : undefined),
    internalSecret: values.INTERNAL_SECRET,
    tls,
    internalTls,
    peerNames: values.INTERNAL_TLS_NAMES,
    auth,
    loopbackOnly,
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT ?? (terminal ? "pretty" : "json"),
    trustedProxies: values.TRUST_PROXY,
    connections: {
      connections: sockets.MAX_CONNECTIONS,
      connectionsPerAddress: sockets.MAX_CONNECTIONS_PER_ADDRESS,
      writeMs: values.WRITE_TIMEOUT,
    },
    streams: { streams: sockets.MAX_STREAMS, streamsPerCaller: values.MAX_STREAMS_PER_CALLER },
    fewFiles: sockets.warning,
    link: values.LINK === "on",
  };
}
