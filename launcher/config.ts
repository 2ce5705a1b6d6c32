import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import net, { type BoundSocket } from "node:net";
import { join } from "node:path";
import { ConfigError, type Environment, integer, optional, readEnvironment } from "@petstore/runtime/environment";
import { CHOSEN, misspelledIn, type Warning } from "@petstore/runtime/settings";
import { lameDuckSettings, processConfig, processSettings, storeSettings, storeWarnings } from "../processes/config.ts";
import { listenProblem } from "../processes/listen-advice.ts";
import { addressSettings, portOf, processNames, replicasOf } from "../processes/names.ts";
import { openFilesLimit } from "../processes/open-files.ts";

export type LauncherConfig = Readonly<ReturnType<typeof launcherConfig>>;

const settings = { ...processSettings, ...storeSettings, ...lameDuckSettings };

/** What is for processes that are started individually. */
const ALONE = ["PORT", "REPLICA", "LISTEN_FDS", ...Object.keys(addressSettings)];

/** What has no effect in an environment, though it looks as if it should. */
export function launcherWarnings(given: Environment = process.env): readonly Warning[] {
  const alone = ALONE.filter((name) => given[name]?.trim());
  const advice = (name: string) =>
    name === "PORT"
      ? `PORT has no effect here, for the petstore has five: set ${portBase(given.PORT)}, the first of them, instead.`
      : `${name} has no effect here: it is for a process that is started alone.`;
  return [
    ...misspelledIn(given, settings),
    ...storeWarnings(given),
    ...alone.map((name) => ({ name, text: advice(name) })),
  ];
}

const portBase = (port = "") =>
  settings.PORT_BASE.format.read(port.trim()) === undefined ? "PORT_BASE" : `PORT_BASE=${port.trim()}`;

/**
 * Reads the configuration, and makes the environment of the processes: the given one, with a secret that they share
 * unless they have one in a file or know each other by certificates. On a terminal they log warnings and worse unless
 * LOG_LEVEL says otherwise, so that the addresses do not scroll away. What `warnings` name has no effect and is left out, so
 * that the processes don't warn of it again. `ports`: how many ports share the open files of one process. Throws
 * `ConfigError`.
 */
export function launcherConfig(
  given: Environment = process.env,
  terminal = process.stdout.isTTY === true,
  { ports = 1, warnings = launcherWarnings(given) } = {},
) {
  const hasOwnProof = [given.INTERNAL_SECRET_FILE, given.INTERNAL_TLS_CA].some((value) => value?.trim());
  const environment: Record<string, string | undefined> = {
    ...(hasOwnProof ? {} : { INTERNAL_SECRET: randomBytes(32).toString("hex") }),
    NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/compile"),
    // For glibc: the threads of V8 and libuv allocate too rarely to need arenas of their own, which take 3 MB of each process.
    MALLOC_ARENA_MAX: "1",
    ...(terminal ? { LOG_LEVEL: "warn" } : {}),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value?.trim())),
  };
  for (const name of ALONE) delete environment[name];
  const values = readEnvironment(environment, settings);
  for (const { name } of warnings) delete environment[name];
  // Reports what is wrong for all processes once, before any is started.
  const { auth, connections, streams, fewFiles } = processConfig(
    values,
    "gateway",
    terminal,
    Math.floor(openFilesLimit() / ports),
  );
  const { DATA_DIR, MONGODB_URI, REPLICAS: replicas, HOST: host, PORT_BASE, LAME_DUCK: lameDuckMs } = values;
  if (!MONGODB_URI && processNames.some((name) => name !== "gateway" && replicasOf(replicas, name) > 1)) {
    throw new ConfigError([
      `REPLICAS=${environment.REPLICAS} needs MongoDB, for the embedded store lets in one process of each service: ` +
        "set MONGODB_URI to a replica set (one member is enough), or ask for several gateways alone.",
    ]);
  }
  const isShared = replicasOf(replicas, "gateway") > 1;
  const port = portOf("gateway", PORT_BASE);
  // Said once, and not by each process.
  if (fewFiles !== undefined)
    Object.assign(environment, {
      MAX_CONNECTIONS: `${connections.connections}`,
      ...(connections.connectionsPerAddress && {
        MAX_CONNECTIONS_PER_ADDRESS: `${connections.connectionsPerAddress}`,
      }),
      MAX_STREAMS: `${streams.streams}`,
    });
  environment[CHOSEN] = Object.keys(environment)
    .filter((name) => environment[name] !== given[name])
    .join();
  return {
    /** That of the processes. */
    environment: environment as Environment,
    /** Says that a process may have too few files open for its settings, and what to do about it. */
    fewFiles,
    replicas,
    /** The gateway's. */
    port,
    /** Where all gateways listen if there are several. */
    sharedPort: isShared ? { host, port } : undefined,
    /** Undefined when MongoDB stores the data. */
    dataDir: MONGODB_URI ? undefined : DATA_DIR,
    /** The file of the petstore's own authority, if the certificates of the ports come from it. */
    authority: values.INTERNAL_TLS_CERT === undefined ? values.INTERNAL_TLS_CA : undefined,
    /** The credential that callers need; undefined when they need none. */
    credential: auth && (auth.apiKeysFile === undefined ? ("access token" as const) : ("API key" as const)),
    /** How long the gateway goes on serving after it was told to stop, in milliseconds. */
    lameDuckMs,
  };
}

const STARTED_BY = "--started-by=";

/**
 * Whether the whole petstore is to be one process: `npm start -- --single-process`, or SINGLE_PROCESS=1; and the process id of
 * npm, if it started this process: `--started-by=$PPID`, which some shells don't replace. Throws `ConfigError` for an argument
 * that is not known.
 */
export function launcherArguments(args: readonly string[], environment: Environment) {
  const startedBy = args.find((arg) => arg.startsWith(STARTED_BY))?.slice(STARTED_BY.length);
  const given = args.filter((arg) => !arg.startsWith(STARTED_BY));
  const unknown = given.find((arg) => arg !== "--single-process");
  if (unknown !== undefined) throw new ConfigError([`${unknown} is not known: the only argument is --single-process.`]);
  const { SINGLE_PROCESS } = readEnvironment(environment, { SINGLE_PROCESS: optional(integer(0, 1)) });
  return { singleProcess: given.length > 0 || SINGLE_PROCESS === 1, startedBy: Number(startedBy) || undefined };
}

/**
 * The socket that all gateways listen on. It stays open as long as the launcher runs: if a gateway stops or dies, another
 * one or its successor accepts the connections that wait. With a socket for each (SO_REUSEPORT), a gateway that ends
 * would drop the connections that wait at its own. Throws `ConfigError`.
 */
export async function bindSharedPort({ host, port }: NonNullable<LauncherConfig["sharedPort"]>): Promise<BoundSocket> {
  const refuse = (code: string) => new ConfigError([listenProblem(code, host, port)]);
  let socket: BoundSocket;
  // New in Node 26.4. Older versions have no such export: to import it by name would keep this file from loading.
  if (!net.BoundSocket)
    throw new ConfigError(["Several gateways need Node 26.4 or newer: leave the gateway out of REPLICAS."]);
  try {
    socket = new net.BoundSocket({ host: (await lookup(host)).address, port });
  } catch (error) {
    throw refuse((error as NodeJS.ErrnoException).code ?? `${error}`);
  }
  if (socket.fd() < 0) throw refuse("ENOTSUP");
  return socket;
}

/** Takes the data directory for this petstore, until this process ends. Throws `ConfigError`. */
export async function takeDataDir(dataDir: string, port: number): Promise<void> {
  const { takeDirectory } = await import("@petstore/store/directory");
  try {
    const taken = takeDirectory(dataDir, `port ${port}`);
    process.once("exit", () => taken[Symbol.dispose]());
  } catch (error) {
    throw new ConfigError([(error as Error).message]);
  }
}
