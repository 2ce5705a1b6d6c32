/** What the command is told on its command line. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";

/** Something on the command line can't be used. The message says what, and what to do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const text = { type: "string" } as const;
const texts = { type: "string", multiple: true } as const;
const flag = { type: "boolean" } as const;

export const FLAGS = {
  reflect: text,
  "reflect-header": texts,
  "descriptor-set": text,
  target: texts,
  protocol: text,
  host: text,
  port: text,
  "admin-host": text,
  "admin-port": text,
  cacert: text,
  cert: text,
  key: text,
  "tls-cert": text,
  "tls-key": text,
  "max-bytes": text,
  "json-depth": text,
  timeout: text,
  codec: text,
  errors: text,
  "omit-unpopulated": flag,
  "original-names": flag,
  "enum-numbers": flag,
  "ignore-unknown": flag,
  unbound: flag,
  "grpc-metadata": flag,
  "allow-header": texts,
  cors: texts,
  title: text,
  watch: flag,
  check: flag,
  json: flag,
  strict: flag,
  version: flag,
  help: { ...flag, short: "h" },
} satisfies ParseArgsOptionsConfig;

export type Settings = Exclude<ReturnType<typeof readFlags>, string>;

/** @throws UsageError */
export function readFlags(args: readonly string[]) {
  const values = parse(args);
  if (values.help) return "help" as const;
  if (values.version) return "version" as const;
  const targets = new Map((values.target ?? []).map(readTarget));
  const source = readSource(values.reflect, values["descriptor-set"]);
  if (source.reflect !== undefined && !targets.has("")) targets.set("", source.reflect);
  if (targets.size === 0)
    throw new UsageError("--descriptor-set says nothing of where the services are: add --target URL.");
  if (values.json && !values.check) throw new UsageError("--json is the form of --check: add --check.");
  const port = count("port", values.port, 8080, [0, MAX_PORT]);
  const bodyBytes = count("max-bytes", values["max-bytes"], 4 * 1024 * 1024, [1, 1024 ** 3]);
  return {
    /** Where the contract comes from. */
    source,
    reflectHeaders: Object.fromEntries((values["reflect-header"] ?? []).map(readHeader)),
    /** Where services are called, by their names; "" is for all others. */
    targets,
    protocol: oneOf("protocol", values.protocol, ["grpc", "grpcweb", "connect"]),
    host: values.host ?? "127.0.0.1",
    port,
    /** Where the admin port listens; undefined for none. */
    admin: readAdmin(values["admin-host"], values["admin-port"], port),
    /** Towards the target, as PEM. */
    targetTls: {
      ...(values.cacert !== undefined && { ca: readCa(values.cacert) }),
      ...pair("cert", values.cert, "key", values.key),
    },
    /** For the command's own port, as PEM. */
    tls: pair("tls-cert", values["tls-cert"], "tls-key", values["tls-key"]),
    corsOrigins: (values.cors ?? []).map(readOrigin),
    /** What the library is told as it is. */
    library: {
      errors: oneOf("errors", values.errors, ["status", "problem"]),
      limits: {
        bodyBytes,
        jsonDepth: count("json-depth", values["json-depth"], 100, [1, 1000]),
        requestMs: duration("timeout", values.timeout ?? "30s"),
      },
      codec: oneOf("codec", values.codec, ["proto3", "exact"]),
      omitUnpopulated: values["omit-unpopulated"],
      originalNames: values["original-names"],
      enumNumbers: values["enum-numbers"],
      ignoreUnknown: values["ignore-unknown"],
      unbound: values.unbound,
      grpcMetadata: values["grpc-metadata"],
      allowHeaders: values["allow-header"] ?? [],
    },
    title: values.title ?? "API",
    watch: values.watch ?? false,
    check: values.check ?? false,
    json: values.json ?? false,
    strict: values.strict ?? false,
  };
}

const MAX_PORT = 65_535;
/** How far the admin port is above the port, if nothing is said of it. */
const ADMIN_DISTANCE = 100;

function readAdmin(host = "127.0.0.1", given: string | undefined, port: number) {
  if (given === "off") return undefined;
  // A port by chance has no neighbour that is known to be free.
  const usual = port && port + ADMIN_DISTANCE;
  if (given === undefined && usual > MAX_PORT)
    throw new UsageError(`--port ${port} leaves no room for the admin port above it: add --admin-port PORT, or off.`);
  return { host, port: count("admin-port", given, usual, [0, MAX_PORT], ", or off") };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function readSource(reflect: string | undefined, descriptorSet: string | undefined) {
  if (reflect !== undefined && descriptorSet !== undefined)
    throw new UsageError("--reflect and --descriptor-set are two sources of one contract: give one of them.");
  if (reflect !== undefined) return { reflect: readUrl("reflect", reflect) };
  if (descriptorSet !== undefined) return { descriptorSet };
  throw new UsageError(
    "Which contract? Give --reflect URL, if the server has reflection, or --descriptor-set FILE with --target URL.",
  );
}

/** `URL` for all services, or `package.Service=URL` for one. */
function readTarget(value: string): [service: string, url: string] {
  const [, service = "", url = ""] = /^(?:([\w.]+)=)?(.*)$/s.exec(value) ?? [];
  return [service, readUrl("target", url)];
}

function readUrl(name: string, value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "")
    throw new UsageError(`--${name} takes a URL such as http://localhost:50051, and not "${value}".`);
  return url.href.replace(/\/$/, "");
}

function readHeader(value: string): [name: string, value: string] {
  const [, name, content] = /^([!#$%&'*+.^_`|~\w-]+):(.*)$/.exec(value) ?? [];
  if (name === undefined || content === undefined)
    throw new UsageError(`--reflect-header takes a header such as "authorization: Bearer abc", and not "${value}".`);
  return [name, content.trim()];
}

function readOrigin(value: string): string {
  if (value === "*" || (URL.canParse(value) && new URL(value).origin === value)) return value;
  throw new UsageError(`--cors takes an origin such as https://shop.example, or *, and not "${value}".`);
}

function oneOf<const T extends string>(name: string, value: string | undefined, all: readonly [T, ...T[]]): T {
  const found = value === undefined ? all[0] : all.find((one) => one === value);
  if (found === undefined) throw new UsageError(`--${name} is one of ${all.join(", ")}, and not "${value}".`);
  return found;
}

function count(name: string, value: string | undefined, otherwise: number, range: [number, number], more = ""): number {
  const [least, most] = range;
  if (value === undefined) return otherwise;
  const number = /^\d{1,12}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= least && number <= most))
    throw new UsageError(`--${name} is a number from ${least} to ${most}${more}, and not "${value}".`);
  return number;
}

/** Milliseconds, of up to an hour. */
function duration(name: string, value: string): number {
  const [, number = "", unit = ""] = /^(\d{1,7})(ms|s|m)$/.exec(value) ?? [];
  const ms = Number(number) * ({ ms: 1, s: 1000, m: 60_000 }[unit] ?? 0);
  if (ms < 1 || ms > 3_600_000)
    throw new UsageError(`--${name} is a time of up to 60m, such as 500ms, 30s or 2m, and not "${value}".`);
  return ms;
}

function pair(certFlag: string, cert: string | undefined, keyFlag: string, key: string | undefined) {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new UsageError(`--${certFlag} and --${keyFlag} belong together: give both.`);
  const read = { cert: readPem(certFlag, cert), key: readPem(keyFlag, key) };
  try {
    createSecureContext(read);
  } catch (error) {
    throw new UsageError(
      `--${certFlag} ${cert} and --${keyFlag} ${key} are no certificate with its key: ${(error as Error).message}`,
    );
  }
  return read;
}

function readCa(path: string): string {
  const pem = readPem("cacert", path);
  try {
    new X509Certificate(pem);
  } catch {
    throw new UsageError(`--cacert: ${path} has no certificate in PEM.`);
  }
  return pem;
}

function readPem(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`--${name}: ${path} can't be read: ${(error as Error).message}`);
  }
}

/** What to do where a port can't be had, by the code of the error; its flags begin with the prefix. */
export const adviceOn =
  (prefix: "" | "admin-") =>
  (code: string): string | undefined =>
    ({
      EADDRINUSE: `something else listens there already. Choose another with --${prefix}port${prefix && " (0 takes a free one, off none)"}.`,
      EACCES: `that is not allowed to you. Choose ${prefix ? "an" : "a"} --${prefix}port above 1023.`,
      EADDRNOTAVAIL: `this machine does not have that address. Choose another with --${prefix}host.`,
      ENOTFOUND: `there is no such host. Choose another with --${prefix}host.`,
    })[code];
