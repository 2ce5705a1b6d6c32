/** The whole petstore for a test: five or more processes on ports of their own, and clients for every endpoint. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Command, Report } from "@petstore/runtime/lifecycle";
import type { ProcessName, ServiceName } from "../../processes/names.ts";
import { openGrpc } from "./grpc.ts";
import { addresses, freePorts, type Instance, instancesOf, inTurn, select, urlOf, type Which } from "./instances.ts";
import { openPlace } from "./mongodb.ts";

type Env = Readonly<Record<string, string>>;

/** The secret of internal RPCs, in the header x-internal-secret. */
export const SECRET = "the-secret-of-a-petstore-under-test";

/** Time limit of a start or a stop. Generous, since the machine may be busy with other tests. */
const PATIENCE_MS = 60_000;

export interface PetstoreOptions {
  /** Environment of every process. With TLS_CERT the test has to bring its own clients. */
  readonly env?: Env;
  /** Environment of all replicas of a kind, until they are restarted. */
  readonly services?: Partial<Record<ProcessName, Env>>;
  /** Replicas of each kind. Several share a store, which then is in MongoDB. By default PETSTORE_TEST_REPLICAS, or one. */
  readonly replicas?: number;
  /** The address of MongoDB, for a test that brings its own. */
  readonly mongodbUri?: string;
  /** The directory of the embedded store, for a test that brings its own. It is used whichever store is tested. */
  readonly dataDir?: string;
}

/** A directory for the embedded engine, which is used if there is no URI. */
export interface StorePlace {
  readonly dataDir: string;
  readonly mongodbUri: string | undefined;
}

export interface Petstore extends AsyncDisposable {
  /** The gateway's address, without a base path or a slash at the end. Of several gateways each in turn. */
  readonly http: string;
  /** Where the services keep their data. */
  readonly store: StorePlace;
  /** The address of the first process that `which` names. */
  url(which: Which): string;
  /** gRPC to the service itself, to each of its replicas in turn. */
  transport(desc: DescService): Transport;
  client<S extends DescService>(desc: S): Client<S>;
  /** Connect through the gateway, or through each of several in turn. */
  readonly endpoint: Transport;
  connect<S extends DescService>(desc: S): Client<S>;
  /** Sends a signal. Resolves when the processes have ended; for SIGSTOP and SIGCONT at once. */
  kill(which: Which, signal?: NodeJS.Signals): Promise<void>;
  /** Resolves when the processes have ended, whatever the cause. */
  ended(which: Which): Promise<void>;
  /** Restarts ended processes on the same ports and data; `env` is for this run. Resolves when they are ready. */
  start(which: Which, env?: Env): Promise<void>;
  /**
   * Arms a failpoint, at which running processes die; "" disarms it. Resolves when they know, to false if one has ended
   * instead.
   */
  arm(which: Which, point: string): Promise<boolean>;
  /** False between the end of a process and its next start. */
  isRunning(which: Which): boolean;
  /** The log so far, of the named processes or of all. */
  logs(which?: Which): string;
  /** The process id of that process, or of the first of that kind. */
  pid(which: Which): number;
  /** Ends all processes and removes the data. */
  stop(): Promise<void>;
}

/**
 * Starts the processes on an empty store. Resolves when every gateway finds all of them ready. The store is the embedded one,
 * or with PETSTORE_TEST_STORE=mongodb databases in MongoDB that are removed with the petstore. With PETSTORE_TEST_LINK=off its
 * processes call each other by plain RPCs.
 */
export async function startPetstore(options: PetstoreOptions = {}): Promise<Petstore> {
  const { replicas = Number(process.env.PETSTORE_TEST_REPLICAS ?? 1) } = options;
  const stack = new AsyncDisposableStack();
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "petstore-")));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  try {
    if (options.dataDir) return await startOn({ dataDir, mongodbUri: undefined }, { ...options, replicas: 1 }, stack);
    const isShared = process.env.PETSTORE_TEST_STORE === "mongodb" || replicas > 1;
    const mongodbUri = options.mongodbUri ?? (isShared ? stack.use(await openPlace()).uri : undefined);
    return await startOn({ dataDir, mongodbUri }, { ...options, replicas }, stack);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function startOn(
  store: StorePlace,
  { env, services, replicas }: PetstoreOptions & { readonly replicas: number },
  stack: AsyncDisposableStack,
): Promise<Petstore> {
  const scheme = env?.TLS_CERT === undefined ? "http" : "https";
  for (;;) {
    const instances = instancesOf(await freePorts(replicas), replicas);
    const running = createProcesses({ store, instances, env });
    try {
      await Promise.all(instances.map(({ kind, name }) => running.start(name, services?.[kind])));
      for (const gateway of select(instances, "gateway"))
        await allReady(urlOf(gateway, scheme) + (env?.HTTP_BASE_PATH ?? ""));
      stack.defer(() => running.stop());
      return petstore(running, { instances, store }, stack);
    } catch (error) {
      await running.stop();
      // Another test may have taken a port between the check and the start.
      if (!/port \d+ is taken/.test(`${error}`)) throw error;
    }
  }
}

function petstore(
  running: ReturnType<typeof createProcesses>,
  { instances, store }: { instances: readonly Instance[]; store: StorePlace },
  stack: AsyncDisposableStack,
): Petstore {
  const transports = new Map<ServiceName, Transport>();
  const transport = (desc: DescService) => {
    const name = serviceOf(desc);
    const known = transports.get(name) ?? through(select(instances, name).map(grpc));
    transports.set(name, known);
    return known;
  };
  function grpc(instance: Instance): Transport {
    const { transport, close } = openGrpc(urlOf(instance));
    stack.defer(close);
    return transport;
  }
  const gateways = select(instances, "gateway").map((gateway) => urlOf(gateway));
  const gateway = inTurn(gateways);
  const endpoint = through(gateways.map((baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })));
  const stop = () => stack.disposeAsync();
  return {
    get http() {
      return gateway();
    },
    store,
    url: (which) => urlOf(select(instances, which)[0]),
    transport,
    client: (desc) => createClient(desc, transport(desc)),
    endpoint,
    connect: (desc) => createClient(desc, endpoint),
    kill: running.kill,
    ended: running.ended,
    start: running.start,
    arm: running.arm,
    isRunning: running.isRunning,
    logs: running.logs,
    pid: running.pid,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Uses the transports in turn. */
function through(transports: readonly Transport[]): Transport {
  const next = inTurn(transports);
  return { unary: (...call) => next().unary(...call), stream: (...call) => next().stream(...call) };
}

/** The service of a descriptor: "pet" for "petstore.pet.v1.PetService" and "petstore.internal.v1.PetInternalService". */
function serviceOf({ name }: DescService): ServiceName {
  return name.replace(/(Internal)?Service$/, "").toLowerCase() as ServiceName;
}

interface Process {
  readonly child: ChildProcess;
  /** Whether its end is expected. */
  mayEnd: boolean;
  isRunning: boolean;
  readonly ended: Promise<unknown>;
}

interface Surroundings {
  readonly instances: readonly Instance[];
  readonly store: StorePlace;
  readonly env: Env | undefined;
}

function createProcesses({ instances, store: { dataDir, mongodbUri }, env }: Surroundings) {
  const root = join(import.meta.dirname, "../..");
  const processes = new Map<Which, Process>();
  const logs = new Map<Which, string>(instances.map(({ name }) => [name, ""]));
  const common: Env = {
    PATH: process.env.PATH ?? "",
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compile"),
    DATA_DIR: dataDir,
    ...(mongodbUri === undefined ? {} : { MONGODB_URI: mongodbUri }),
    INTERNAL_SECRET: SECRET,
    LOG_LEVEL: "debug",
    LOG_FORMAT: "json",
    ...addresses(instances, env?.TLS_CERT === undefined ? "http" : "https"),
    ...(process.env.PETSTORE_TEST_LINK === undefined ? {} : { LINK: process.env.PETSTORE_TEST_LINK }),
    ...env,
  };

  const killAll = () => {
    for (const { child } of processes.values()) child.kill("SIGKILL");
  };
  process.once("exit", killAll);

  async function startOne({ kind, name, port }: Instance, own: Env): Promise<void> {
    const script = kind === "gateway" ? ["gateway/main.ts"] : ["services/main.ts", kind];
    const child = spawn(process.execPath, script, {
      cwd: root,
      env: { ...common, PORT: String(port), ...own },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text) => logs.set(name, logs.get(name) + text));
    const ended = once(child, "exit");
    const started: Process = { child, ended, isRunning: true, mayEnd: own.CRASH_AT !== undefined };
    // Prints why the process ended, for a test that fails because of it.
    child.once("exit", (code, signal) => {
      started.isRunning = false;
      const how = code ? `exit code ${code}` : !started.mayEnd && (signal ?? "exit code 0, which nobody asked for");
      if (how) process.stderr.write(`${name} ended with ${how}:\n${logs.get(name)?.slice(-4000)}\n`);
    });
    processes.set(name, started);

    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const failed = (why: string) => reject(new Error(`${name} did not start: ${why}\n${logs.get(name)}`));
    const late = setTimeout(failed, PATIENCE_MS, "it took too long");
    child.on("message", (report: Report) => {
      if (report.type === "ready") resolve();
      if (report.type === "refused") failed(report.message);
    });
    child.once("error", (error) => failed(error.message));
    child.once("exit", (code, signal) => failed(`it ended with ${signal ?? code}`));
    try {
      await promise;
    } finally {
      clearTimeout(late);
    }
  }

  /** Calls `act` for all named processes at once. */
  const each = async (which: Which, act: (instance: Instance) => Promise<unknown>) =>
    void (await Promise.all(select(instances, which).map(act)));
  const ended = (which: Which) => each(which, async ({ name }) => processes.get(name)?.ended);

  async function kill(which: Which, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    for (const { name } of select(instances, which)) {
      const running = processes.get(name);
      if (running) running.mayEnd = true;
      running?.child.kill(signal);
    }
    if (signal !== "SIGSTOP" && signal !== "SIGCONT") await ended(which);
  }

  async function armOne({ name }: Instance, point: string): Promise<boolean> {
    const running = processes.get(name);
    if (!running) throw new Error(`${name} was never started.`);
    running.mayEnd = true;
    const command: Command = { type: "crash", at: point };
    const armed = Promise.withResolvers<boolean>();
    const hear = (report: Report) => report.type === "armed" && armed.resolve(true);
    running.child.on("message", hear);
    // Sending fails if the process has just ended; its end reports that.
    running.child.send(command, () => {});
    try {
      return await Promise.race([armed.promise, running.ended.then(() => false)]);
    } finally {
      running.child.off("message", hear);
    }
  }
  const arm = async (which: Which, point: string) =>
    (await Promise.all(select(instances, which).map((instance) => armOne(instance, point)))).every(Boolean);

  const isRunning = (which: Which): boolean =>
    select(instances, which).every(({ name }) => processes.get(name)?.isRunning);

  const pid = (which: Which): number => processes.get(select(instances, which)[0].name)?.child.pid ?? 0;

  async function stop(): Promise<void> {
    const command: Command = { type: "stop" };
    for (const running of processes.values()) {
      running.mayEnd = true;
      if (running.child.connected) running.child.send(command, () => {});
    }
    const late = setTimeout(killAll, PATIENCE_MS / 4);
    await Promise.all([...processes.values()].map((running) => running.ended));
    clearTimeout(late);
    process.off("exit", killAll);
  }

  return {
    start: (which: Which, own: Env = {}) => each(which, (instance) => startOne(instance, own)),
    kill,
    ended,
    arm,
    isRunning,
    pid,
    stop,
    logs: (which?: Which) =>
      (which ? select(instances, which) : instances).map(({ name }) => logs.get(name) ?? "").join(""),
  };
}

async function allReady(gateway: string): Promise<void> {
  const limit = Date.now() + PATIENCE_MS;
  for (;;) {
    const said = await readiness(gateway);
    if (said.includes('"ready"') && !said.includes("degraded")) return;
    if (Date.now() > limit) throw new Error(`The petstore is not ready: ${said}`);
    await sleep(50);
  }
}

/** The readiness of a gateway. The certificate is not verified, since other tests do that. */
async function readiness(gateway: string): Promise<string> {
  const get = gateway.startsWith("https:") ? getHttps : getHttp;
  const [answer] = await once(get(`${gateway}/readyz`, { rejectUnauthorized: false, agent: false }), "response");
  return text(answer);
}
