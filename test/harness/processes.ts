/** Starts, kills and arms the processes of a petstore under test. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Command, LAUNCHED, type Report } from "@petstore/runtime/lifecycle";
import { addresses, type Instance, select, type Which } from "./instances.ts";

export type Env = Readonly<Record<string, string>>;

/** The secret of internal RPCs, in the header x-internal-secret. */
export const SECRET = "the-secret-of-a-petstore-under-test";

/** Time limit of a start or a stop. Generous, since the machine may be busy with other tests. */
export const PATIENCE_MS = 60_000;

/** A directory for the embedded engine, which is used if there is no URI. */
export interface StorePlace {
  readonly dataDir: string;
  readonly mongodbUri: string | undefined;
}

/** Each method takes a process, those of a kind, or all. */
export interface Processes {
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
  /** Ends all of them. */
  stop(): Promise<void>;
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
  /** Whether the whole petstore runs in one process. Then its parts can't be killed or restarted one by one. */
  readonly isSingle?: boolean | undefined;
}

/** The processes before their first start. */
export function createProcesses({
  instances,
  store: { dataDir, mongodbUri },
  env,
  isSingle = process.env.PETSTORE_TEST_SINGLE_PROCESS === "1",
}: Surroundings): Processes {
  const root = join(import.meta.dirname, "../..");
  const processes = new Map<Which, Process>();
  const logs = new Map<Which, string>(instances.map(({ name }) => [name, ""]));
  const common: Env = {
    PATH: process.env.PATH ?? "",
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compile"),
    DATA_DIR: dataDir,
    ...(mongodbUri === undefined ? {} : { MONGODB_URI: mongodbUri }),
    INTERNAL_SECRET: SECRET,
    ADMIN_PORT: "off",
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
    // The process of the gateway then is all of them.
    if (isSingle && kind !== "gateway") return;
    const whole = ["launcher/main.ts", "--single-process"];
    const script = isSingle ? whole : kind === "gateway" ? ["gateway/main.ts"] : ["services/main.ts", kind];
    const child = spawn(process.execPath, script, {
      cwd: root,
      env: { ...common, [isSingle ? "PORT_BASE" : "PORT"]: String(port), [LAUNCHED]: "1", ...own },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text) => logs.set(name, logs.get(name) + text));
    // Not at its exit: then a part of its log may still be on its way, and its reports.
    const ended = once(child, "close");
    const started: Process = { child, ended, isRunning: true, mayEnd: own.CRASH_AT !== undefined };
    child.once("exit", () => {
      started.isRunning = false;
    });
    // Prints why the process ended, for a test that fails because of it.
    child.once("close", (code, signal) => {
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
    child.once("close", (code, signal) => failed(`it ended with ${signal ?? code}`));
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
