/** Connecting to MongoDB: waits for a server that may still become usable, and refuses a configuration that never will. */

import {
  type Document,
  MongoAPIError,
  MongoClient,
  type MongoClientOptions,
  MongoCompatibilityError,
  MongoError,
  MongoParseError,
  MongoServerError,
  MongoServerSelectionError,
  type TopologyDescription,
} from "mongodb";
import type { EngineContext } from "../open.ts";
import { UnusableServer } from "../port.ts";
import { appName } from "./database.ts";
import { withTimeout } from "./deadline.ts";

/** The driver's `timeoutMS` does nothing in this version; these bound every wait. */
const SETTINGS: MongoClientOptions = {
  appName: "petstore",
  ignoreUndefined: true,
  retryReads: true,
  retryWrites: true,
  socketTimeoutMS: 3000,
  connectTimeoutMS: 1500,
  serverSelectionTimeoutMS: 3000,
  waitQueueTimeoutMS: 3000,
  heartbeatFrequencyMS: 1000,
};

/** MongoDB 6.0 speaks this version of the wire protocol. */
const MIN_WIRE_VERSION = 17;
const POLL_INTERVAL_MS = 1000;
export const UNAUTHORIZED = 13;
const WRONG_PASSWORD = "has a user name or a password that MongoDB does not accept";
/** What is wrong with a connection string, by the server's error codes. */
const PROBLEMS: Readonly<Record<number, string>> = {
  18: WRONG_PASSWORD,
  8000: WRONG_PASSWORD,
  [UNAUTHORIZED]:
    "names a user that may not read and write there: grant it the role readWrite on the petstore's databases",
  73: "names a database whose name MongoDB does not allow or that is too long: letters, digits, - and _ will do",
  13297: "names a database that is there already under a name that differs in capital letters alone",
};
/** The failed system calls that mean an unreadable file rather than an unreachable server. */
const FILE_CALLS = new Set<unknown>(["open", "read"]);
const FILE_SETTINGS = ["tlsCAFile", "tlsCertificateKeyFile", "tlsCRLFile"] as const;

/** With a `version` the client tells MongoDB that of its process. Throws `UnusableServer` for an invalid connection string. */
export function createClient(uri: string, settings: MongoClientOptions = {}, version?: string): MongoClient {
  try {
    const about = version === undefined ? {} : { appName: appName(uri, version) };
    return new MongoClient(uri, { ...SETTINGS, ...about, ...settings });
  } catch {
    // Omits the driver's message, which may repeat the password.
    throw wrong("is not a connection string that the MongoDB driver understands");
  }
}

/**
 * Connects, and checks with `probe` whether the server is usable. Waits without limit for a server that may still become
 * usable, and reports what it waits for. Throws `UnusableServer` for what waiting can't solve.
 */
export async function connect(
  client: MongoClient,
  probe: () => Promise<unknown>,
  { log, sleep, waitsFor }: Pick<EngineContext, "log" | "sleep"> & { readonly waitsFor?: (what: string) => void },
): Promise<void> {
  const hosts = client.options.srvHost ?? client.options.hosts.join(", ");
  let said = "";
  for (;;) {
    try {
      await client.connect();
      checkServer(await withTimeout("repeatable", client.db("admin").command({ hello: 1 })));
      await probe();
      if (said) log.info("MongoDB is there");
      return;
    } catch (error) {
      if (error instanceof UnusableServer || !isOutside(error)) throw error;
      const unusable = refusal(error, client);
      if (unusable) throw unusable;
      const what = `MongoDB at ${hosts}: ${missing(error)}`;
      if (what !== said) {
        log.warn({ reason: error.message }, `waiting for ${what}`);
        waitsFor?.(what);
      }
      said = what;
    }
    await sleep(POLL_INTERVAL_MS);
  }
}

const silent = { info() {}, warn() {}, error() {} };

/** A connected client. Throws `UnusableServer`, also for a server that does not answer now. */
export async function connectAtOnce(uri: string, settings: MongoClientOptions): Promise<MongoClient> {
  const client = createClient(uri, settings);
  const waitsFor = (what: string) => {
    throw new UnusableServer(`names a server that can't be asked now (${what})`);
  };
  try {
    await connect(client, async () => {}, { log: silent, sleep: async () => {}, waitsFor });
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Throws `UnusableServer` for a server that can't keep the promises of the store. `hello` is its answer to that command. */
export function checkServer(hello: Document): void {
  if (hello.maxWireVersion < MIN_WIRE_VERSION) throw tooOld();
  const isRouter = hello.msg === "isdbgrid";
  if (hello.setName === undefined && !isRouter) {
    throw wrong(
      "names a standalone server, which can't promise that an answered write stays: " +
        "start mongod with --replSet and run rs.initiate() (one member is enough)",
    );
  }
}

/** Errors of the driver or the system, such as a name that DNS does not know. */
const isOutside = (error: unknown): error is Error =>
  error instanceof MongoError || (error instanceof Error && "syscall" in error);

function refusal(error: Error, { options }: MongoClient): UnusableServer | undefined {
  const topology = topologyOf(error);
  if ("syscall" in error && FILE_CALLS.has(error.syscall)) return unreadable(error as NodeJS.ErrnoException, options);
  const broken = topology && tlsProblemOf(topology);
  if (broken?.startsWith("ERR_OSSL_PEM_")) {
    return wrong(`names a file for TLS that holds no PEM (${broken}): see to tlsCertificateKeyFile`);
  }
  if (error instanceof MongoCompatibilityError || topology?.compatible === false) return tooOld();
  if (error instanceof MongoParseError || error instanceof MongoAPIError) {
    return wrong("is not a connection string that the MongoDB driver can follow");
  }
  if (error instanceof MongoServerError) {
    if (error.code === UNAUTHORIZED && !options.credentials)
      return wrong("names no user, and MongoDB asks for one: mongodb://user:password@...");
    const problem = PROBLEMS[Number(error.code)];
    if (problem !== undefined) return wrong(problem);
  }
  // The driver drops servers that answer but don't belong to the set.
  if (topology?.servers.size === 0 && options.srvHost === undefined) {
    return wrong(`asks for the replica set ${options.replicaSet}, and no server that it names belongs to it`);
  }
  return undefined;
}

/** Omits the path: by mistake it may be the private key itself. */
function unreadable(error: NodeJS.ErrnoException, options: MongoClient["options"]): UnusableServer {
  const setting = error.path && FILE_SETTINGS.find((name) => options[name] === error.path);
  return wrong(
    `names a file for TLS that can't be read${setting ? `, with ${setting}` : ""} (${error.code}): give the path of one in PEM that can`,
  );
}

function topologyOf(error: Error): TopologyDescription | undefined {
  return error instanceof MongoServerSelectionError ? (error.reason as TopologyDescription) : undefined;
}

function missing(error: Error): string {
  const topology = topologyOf(error);
  const types = [...(topology?.servers.values() ?? [])].map(({ type }) => type);
  if (!topology || types.length === 0) return "it can't be used yet";
  if (types.every((type) => type === "Unknown")) {
    const problem = tlsProblemOf(topology);
    if (problem === undefined) return "nothing answers there";
    return `it answers, but TLS fails (${problem}): see to its certificate, and to tls, tlsCAFile and tlsCertificateKeyFile`;
  }
  if (types.includes("RSGhost")) return "the replica set is not initiated, run rs.initiate() there";
  return "the replica set has no primary";
}

/** Node's code for a TLS problem, such as CERT_HAS_EXPIRED. Codes of the system, such as ECONNREFUSED, are excluded. */
const tlsProblemOf = ({ servers }: TopologyDescription): string | undefined =>
  [...servers.values()]
    .map(({ error }) => (error?.cause as { readonly code?: unknown } | undefined)?.code)
    .find((code) => typeof code === "string" && !/^E(?!RR_)/.test(code)) as string | undefined;

const wrong = (problem: string) => new UnusableServer(problem);
const tooOld = () => wrong("names a MongoDB that is too old: 6.0 or newer is needed");
