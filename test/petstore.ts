/** The whole petstore for a test: its five processes on ports of their own, and clients for every door. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type ProcessName, portOf, processNames, type ServiceName } from "#shared/config.ts";
import type { Order, Report } from "#shared/lifecycle.ts";
import { openPlace } from "./mongodb.ts";

type Env = Readonly<Record<string, string>>;

/** What internal RPCs ask for in the header x-petstore-secret. */
export const SECRET = "the-secret-of-a-petstore-under-test";

/** A start or a stop that takes longer has failed; generous, for the machine may be busy with other tests. */
const PATIENCE_MS = 60_000;

export interface PetstoreOptions {
  /** For every process. */
  readonly env?: Env;
  /** For single processes, until they are started again. */
  readonly services?: Partial<Record<ProcessName, Env>>;
}

/** A directory for the embedded engine, which is not used when there is a URI. */
export interface StorePlace {
  readonly dataDir: string;
  readonly mongodbUri: string | undefined;
}

export interface Petstore extends AsyncDisposable {
  /** Where the gateway is, without a slash at the end and without a base path. */
  readonly http: string;
  /** Where the services keep their data. */
  readonly store: StorePlace;
  url(name: ProcessName): string;
  /** gRPC to the service itself. */
  transport(desc: DescService): Transport;
  client<S extends DescService>(desc: S): Client<S>;
  /** Connect through the gateway. */
  readonly door: Transport;
  connect<S extends DescService>(desc: S): Client<S>;
  /** Sends a signal; resolves when the process has ended, or at once for SIGSTOP and SIGCONT. */
  kill(name: ProcessName, signal?: NodeJS.Signals): Promise<void>;
  /** Resolves when the process has ended, by itself or not. */
  ended(name: ProcessName): Promise<void>;
  /** Starts a process that has ended, on the same port and data; `env` is for this run. Resolves when it is ready. */
  start(name: ProcessName, env?: Env): Promise<void>;
  /** What was logged so far, by one process or by all. */
  logs(name?: ProcessName): string;
  /** Ends all processes and removes the data. */
  stop(): Promise<void>;
}

/**
 * Starts the five processes on an empty store, and resolves when the gateway finds all of them ready. The store is the
 * embedded one, or with PETSTORE_TEST_STORE=mongodb a place in MongoDB that lives as long as the petstore.
 */
export async function startPetstore(options: PetstoreOptions = {}): Promise<Petstore> {
  const stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), "petstore-"));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  try {
    return await startOn({ dataDir, mongodbUri: await mongodb(stack) }, options, stack);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function mongodb(stack: AsyncDisposableStack): Promise<string | undefined> {
  if (process.env.PETSTORE_TEST_STORE !== "mongodb") return undefined;
  return stack.use(await openPlace()).uri;
}

async function startOn(store: StorePlace, options: PetstoreOptions, stack: AsyncDisposableStack): Promise<Petstore> {
  for (;;) {
    const portBase = await freePorts();
    const running = createProcesses({ store, portBase, env: options.env });
    try {
      await Promise.all(processNames.map((name) => running.start(name, options.services?.[name])));
      await allReady(`http://127.0.0.1:${portBase}${options.env?.HTTP_BASE_PATH ?? ""}`);
      stack.defer(() => running.stop());
      return petstore(running, { portBase, store }, stack);
    } catch (error) {
      await running.stop();
      // Between looking and listening another test may have taken a port.
      if (!/port \d+ is taken/.test(`${error}`)) throw error;
    }
  }
}

function petstore(
  running: ReturnType<typeof createProcesses>,
  { portBase, store }: { portBase: number; store: StorePlace },
  stack: AsyncDisposableStack,
): Petstore {
  const url = (name: ProcessName) => `http://127.0.0.1:${portOf(name, portBase)}`;
  const sessions = new Map<string, Http2SessionManager>();
  const transport = (desc: DescService) => {
    const baseUrl = url(serviceOf(desc));
    const sessionManager = sessions.get(baseUrl) ?? new Http2SessionManager(baseUrl);
    sessions.set(baseUrl, sessionManager);
    return createGrpcTransport({ baseUrl, sessionManager });
  };
  const door = createConnectTransport({ baseUrl: url("gateway"), httpVersion: "1.1" });
  const stop = async () => {
    for (const session of sessions.values()) session.abort();
    await stack.disposeAsync();
  };
  return {
    http: url("gateway"),
    store,
    url,
    transport,
    client: (desc) => createClient(desc, transport(desc)),
    door,
    connect: (desc) => createClient(desc, door),
    kill: running.kill,
    ended: running.ended,
    start: running.start,
    logs: running.logs,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** "petstore.pet.v1.PetService" and "petstore.internal.v1.PetInternalService" are both of "pet". */
function serviceOf({ name }: DescService): ServiceName {
  return name.replace(/(Internal)?Service$/, "").toLowerCase() as ServiceName;
}

interface Process {
  readonly child: ChildProcess;
  /** Its end comes as no surprise. */
  mayEnd: boolean;
  readonly ended: Promise<unknown>;
}

interface Surroundings {
  readonly portBase: number;
  readonly store: StorePlace;
  readonly env: Env | undefined;
}

function createProcesses({ portBase, store: { dataDir, mongodbUri }, env }: Surroundings) {
  const root = join(import.meta.dirname, "..");
  const processes = new Map<ProcessName, Process>();
  const logs = new Map<ProcessName, string>(processNames.map((name) => [name, ""]));
  const common: Env = {
    PATH: process.env.PATH ?? "",
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compile"),
    PORT_BASE: String(portBase),
    DATA_DIR: dataDir,
    ...(mongodbUri === undefined ? {} : { MONGODB_URI: mongodbUri }),
    INTERNAL_SECRET: SECRET,
    LOG_LEVEL: "debug",
    LOG_FORMAT: "json",
    ...env,
  };

  const killAll = () => {
    for (const { child } of processes.values()) child.kill("SIGKILL");
  };
  process.once("exit", killAll);

  async function start(name: ProcessName, own: Env = {}): Promise<void> {
    const script = name === "gateway" ? ["gateway/main.ts"] : ["services/main.ts", name];
    const child = spawn(process.execPath, script, {
      cwd: root,
      env: { ...common, ...own },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text) => logs.set(name, logs.get(name) + text));
    const ended = once(child, "exit");
    const started: Process = { child, ended, mayEnd: own.CRASH_AT !== undefined };
    // A test that then fails should not have to guess why.
    child.once("exit", (code, signal) => {
      const how = code ? `exit code ${code}` : !started.mayEnd && (signal ?? "exit code 0, which nobody asked for");
      if (how) process.stderr.write(`${name} ended with ${how}:\n${logs.get(name)?.slice(-4000)}\n`);
    });
    processes.set(name, started);

    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const failed = (why: string) => reject(new Error(`${name} did not start: ${why}\n${logs.get(name)}`));
    const late = setTimeout(failed, PATIENCE_MS, "it took too long");
    child.on("message", (report: Report) => (report.type === "ready" ? resolve() : failed(report.message)));
    child.once("error", (error) => failed(error.message));
    child.once("exit", (code, signal) => failed(`it ended with ${signal ?? code}`));
    try {
      await promise;
    } finally {
      clearTimeout(late);
    }
  }

  const ended = async (name: ProcessName) => void (await processes.get(name)?.ended);

  async function kill(name: ProcessName, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const running = processes.get(name);
    if (running) running.mayEnd = true;
    running?.child.kill(signal);
    if (signal !== "SIGSTOP" && signal !== "SIGCONT") await ended(name);
  }

  async function stop(): Promise<void> {
    const order: Order = { type: "stop" };
    for (const running of processes.values()) {
      running.mayEnd = true;
      if (running.child.connected) running.child.send(order, () => {});
    }
    const late = setTimeout(killAll, PATIENCE_MS / 4);
    await Promise.all(processNames.map(ended));
    clearTimeout(late);
    process.off("exit", killAll);
  }

  return {
    start,
    kill,
    ended,
    stop,
    logs: (name?: ProcessName) => (name ? logs.get(name) : [...logs.values()].join("")) ?? "",
  };
}

async function allReady(gateway: string): Promise<void> {
  const limit = Date.now() + PATIENCE_MS;
  for (;;) {
    const response = await fetch(`${gateway}/readyz`);
    const text = await response.text();
    if (response.ok) return;
    if (Date.now() > limit) throw new Error(`The petstore is not ready: ${text}`);
    await sleep(50);
  }
}

/** The first of as many free ports in a row as there are processes, below those that systems give to outgoing connections. */
export async function freePorts(): Promise<number> {
  for (;;) {
    const base = 10_000 + 5 * Math.floor(Math.random() * 4000);
    const free = await Promise.all(processNames.map((name) => isFree(portOf(name, base))));
    if (free.every(Boolean)) return base;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server
    .once("error", () => resolve(false))
    .listen({ host: "127.0.0.1", port }, () => server.close(() => resolve(true)));
  return promise;
}
