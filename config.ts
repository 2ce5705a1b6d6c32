/**
 * The settings that several kinds of process read from their environment, in two pure steps: `readEnvironment` checks
 * each variable by itself; `processConfig` then builds the configuration and checks what concerns several variables
 * together. The settings of one kind are in `gateway/config.ts`, `services/config.ts` and `launcher/config.ts`.
 */
import type { AuthConfig } from "@petstore/rpc/auth/open";
import { isLoopback } from "@petstore/rpc/http/allowed-hosts";
import { type ConnectionLimits, defaultConnectionLimits } from "@petstore/rpc/http/connections";
import { type ListenAdvice, origin } from "@petstore/rpc/http/listen";
import { defaultStreamLimits, type StreamLimits } from "@petstore/rpc/server/open-streams";
import type { CertificateFiles } from "@petstore/rpc/tls/certificates";
import {
  ConfigError,
  duration,
  host,
  integer,
  type Kind,
  kind,
  list,
  mongodbUri,
  oneOf,
  optional,
  type Secret,
  secret,
  text,
  urls,
  type Values,
  withDefault,
} from "@petstore/runtime/environment";
import type { LogFormat } from "@petstore/runtime/log";
import { type LogLevel, logLevels } from "@petstore/runtime/log-levels";

/** In the order of their ports: the index is added to PORT_BASE. */
export const processNames = ["gateway", "pet", "category", "order", "inventory"] as const;
export type ProcessName = (typeof processNames)[number];
export type ServiceName = Exclude<ProcessName, "gateway">;

export const isServiceName = (name: string | undefined): name is ServiceName =>
  name !== "gateway" && processNames.some((known) => known === name);

/** How many processes there are of each kind; 1 for a kind that is missing. */
export type Replicas = ReadonlyMap<ProcessName, number>;
export const replicasOf = (replicas: Replicas, name: ProcessName): number => replicas.get(name) ?? 1;

/** The name of one of `count` processes of a kind: "pet", or "pet-2" where there are several. */
export const instanceOf = (name: ProcessName, replica: number, count: number): string =>
  count === 1 ? name : `${name}-${replica}`;

const MAX_REPLICAS = 64;

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
  readonly connections: ConnectionLimits;
  /** How many streams may be open, such as those that watch for changes. */
  readonly streams: StreamLimits;
  /** Whether it calls the services over links, or each call is a plain RPC. */
  readonly link: boolean;
}

/** Settings of the gateway. The launcher waits that much longer for its end. */
export const lameDuckSettings = { LAME_DUCK: withDefault(duration("0s", "60s"), 500) };

/** Settings of the services. The launcher also checks that the directory can be written. */
export const storeSettings = {
  DATA_DIR: withDefault(text, "data"),
  MONGODB_URI: optional(mongodbUri),
  EVENTS_RETENTION: optional(duration("1m", "30d")),
};

/** The algorithms of RFC 7518 and 8037 with a key pair: whoever can verify a token must not be able to sign one. */
const SIGNATURES = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
] as const;

// Whoever can change the keys on their way can sign any token, hence https.
const keysPlace: Kind<string> = kind(
  "the https address of the issuer's keys such as https://login.example/jwks.json (http on loopback alone), or a file",
  (place) => {
    if (!/^\w+:\/\//.test(place)) return place;
    const { protocol, hostname } = URL.parse(place) ?? {};
    return protocol === "https:" || (protocol === "http:" && isLoopback(hostname?.replace(/^\[|\]$/g, "") ?? ""))
      ? place
      : undefined;
  },
);

/** How external callers authenticate. It is the same for all processes. */
const authSettings = {
  AUTH_MODE: withDefault(oneOf("none", "keys", "jwt", "keys,jwt"), "none"),
  API_KEYS_FILE: optional(text),
  JWT_ISSUER: optional(text),
  JWT_AUDIENCE: optional(text),
  JWT_JWKS: optional(keysPlace),
  JWT_ALGORITHMS: withDefault(list(oneOf(...SIGNATURES)), ["RS256", "ES256", "EdDSA"]),
};

/** The name in the certificates of the petstore's own processes, unless configured otherwise. */
export const PEER_NAME = "spiffe://petstore/process";

/** The certificates and secrets that a process shows, and those that it accepts. */
const tlsSettings = {
  TLS_CERT: optional(text),
  TLS_KEY: optional(text),
  INTERNAL_SECRET: optional(secret(32)),
  INTERNAL_TLS_CA: optional(text),
  INTERNAL_TLS_CERT: optional(text),
  INTERNAL_TLS_KEY: optional(text),
  INTERNAL_TLS_NAMES: withDefault(list(text), [PEER_NAME]),
};

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

const addressSettings = {
  PET_URL: optional(urls),
  CATEGORY_URL: optional(urls),
  ORDER_URL: optional(urls),
  INVENTORY_URL: optional(urls),
};

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
  MAX_CONNECTIONS: withDefault(integer(10, 100_000), defaultConnectionLimits.connections),
  MAX_CONNECTIONS_PER_ADDRESS: withDefault(integer(1, 100_000), defaultConnectionLimits.connectionsPerAddress),
  MAX_STREAMS: withDefault(integer(1, 100_000), defaultStreamLimits.streams),
  MAX_STREAMS_PER_CALLER: withDefault(integer(1, 100_000), defaultStreamLimits.streamsPerCaller),
  LINK: withDefault(oneOf("on", "off"), "on"),
  WRITE_TIMEOUT: withDefault(duration("1s", "10m"), defaultConnectionLimits.writeMs),
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

/** The common part of a configuration. `terminal`: whether the log goes to a terminal. Throws `ConfigError`. */
export function processConfig(
  values: Values<typeof processSettings>,
  name: ProcessName,
  terminal: boolean,
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
  const local = (service: ServiceName) =>
    Array.from({ length: replicasOf(REPLICAS, service) }, (_, i) =>
      origin(values.HOST, portOf(service, PORT_BASE, i + 1), (tls ?? internalTls) && "https"),
    );
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
    connections: {
      ...defaultConnectionLimits,
      connections: values.MAX_CONNECTIONS,
      connectionsPerAddress: values.MAX_CONNECTIONS_PER_ADDRESS,
      writeMs: values.WRITE_TIMEOUT,
    },
    streams: { streams: values.MAX_STREAMS, streamsPerCaller: values.MAX_STREAMS_PER_CALLER },
    link: values.LINK === "on",
  };
}

function tlsConfig(
  values: Values<typeof tlsSettings & typeof addressSettings>,
  name: ProcessName,
): Pick<ProcessConfig, "tls" | "internalTls"> {
  const { TLS_CERT, TLS_KEY, INTERNAL_SECRET, INTERNAL_TLS_CA: ca, INTERNAL_TLS_CERT, INTERNAL_TLS_KEY } = values;
  const problems: string[] = [];
  const need = (name: string, value: unknown, why: string) => {
    if (value === undefined) problems.push(`${name} is not set: ${why}.`);
  };
  const pair = (cert: string | undefined, key: string | undefined, prefix: string) => {
    if (cert !== undefined) need(`${prefix}TLS_KEY`, key, `${prefix}TLS_CERT needs the key of its certificate`);
    if (key !== undefined) need(`${prefix}TLS_CERT`, cert, `${prefix}TLS_KEY needs the certificate that it is for`);
    return cert === undefined || key === undefined ? undefined : { cert, key };
  };
  const own = pair(TLS_CERT, TLS_KEY, "");
  const internal = pair(INTERNAL_TLS_CERT, INTERNAL_TLS_KEY, "INTERNAL_");
  if (ca === undefined) {
    need("INTERNAL_SECRET", INTERNAL_SECRET, `it must be ${secret(32).description}`);
    if (internal) need("INTERNAL_TLS_CA", ca, "INTERNAL_TLS_CERT is for mutual TLS, which needs it");
  } else {
    need("INTERNAL_TLS_CERT", internal ?? own, "INTERNAL_TLS_CA needs a certificate to show, this one or TLS_CERT");
    if (name !== "gateway") need("TLS_CERT", own, "INTERNAL_TLS_CA needs a port with TLS");
    for (const variable of Object.keys(addressSettings) as (keyof typeof addressSettings)[])
      for (const address of INTERNAL_SECRET ? [] : (values[variable] ?? []))
        if (!address.startsWith("https:"))
          problems.push(`${variable}=${address} is wrong: it must be an https address, where certificates are shown.`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const shown = internal ?? own;
  return {
    tls: own && { ...own, ca: name === "gateway" ? undefined : ca },
    internalTls: ca === undefined || !shown ? undefined : { ...shown, ca },
  };
}

function authConfig(values: Values<typeof authSettings>): AuthConfig | undefined {
  const { AUTH_MODE: mode, API_KEYS_FILE, JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS } = values;
  if (mode === "none") return undefined;
  const asks = (one: string) => mode.split(",").includes(one);
  const needed = { ...(asks("keys") && { API_KEYS_FILE }), ...(asks("jwt") && { JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS }) };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
  if (missing.length > 0)
    throw new ConfigError(missing.map((name) => `${name} is not set: AUTH_MODE=${mode} needs it.`));
  return {
    apiKeysFile: needed.API_KEYS_FILE,
    tokens: asks("jwt")
      ? {
          issuer: JWT_ISSUER as string,
          audience: JWT_AUDIENCE as string,
          jwks: JWT_JWKS as string,
          algorithms: values.JWT_ALGORITHMS,
        }
      : undefined,
  };
}

/**
 * The port of a process. The first processes of all kinds are side by side, above them the second ones, and so on. All
 * gateways share one port, so that external callers know a single address; the system gives each connection to one of
 * them. Services are called over few connections that stay open, so each has a port of its own, and its callers
 * distribute their calls.
 */
export const portOf = (name: ProcessName, portBase: number, replica = 1): number =>
  portBase + processNames.indexOf(name) + (name === "gateway" ? 0 : (replica - 1) * processNames.length);

/** Advice for a process that can't listen, in terms of its settings. */
export const listenAdvice: ListenAdvice = (code, host, port) =>
  new Map([
    ["EADDRINUSE", `port ${port} is taken, perhaps by another petstore: end it, or move this one with PORT_BASE=9080.`],
    ["ENOTSUP", "this system does not share a port among processes: leave the gateway out of REPLICAS."],
    ["EINVAL", "LISTEN_FDS=1 says that descriptor 3 is a socket to listen on, and it is none: leave it out."],
    ["EACCES", `port ${port} needs privileges that this user has not: choose another with PORT or PORT_BASE.`],
    ["EADDRNOTAVAIL", `HOST=${host} is no address of this machine: use HOST=127.0.0.1 or one that it has.`],
    ["ENOTFOUND", `HOST=${host} is no name that this machine can find: use HOST=127.0.0.1 or an IP address.`],
  ]).get(code);

const MAX_PORT = 65_535;
