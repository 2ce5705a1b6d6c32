/** A petstore for a test: a process of its own, in memory, on ports by chance. It ends with the process that started it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createPetstore, type Petstore } from "../client/index.ts";

export interface StartOptions {
  /** Draws the pets. 1 by default. */
  readonly seed?: number;
  /** How many pets there are at the start, with their categories and orders. None by default. */
  readonly pets?: number;
  /** Where its clock begins; the real time by default. */
  readonly now?: Date;
  /** Calls that fail, to test what your program does about it. */
  readonly faults?: readonly Fault[];
  /** Its environment, such as { RATE_LIMIT: "10/s" }. Nothing is taken from this process's own. */
  readonly env?: Readonly<Record<string, string>>;
}

/** As it is written in JSON. */
export interface Fault {
  /** An operation such as "POST /store/orders", an RPC such as "petstore.order.v1.OrderService/CreateOrder", or "*". */
  readonly match: string;
  /** How many of the calls it strikes, from 0 to 1, drawn from the seed. */
  readonly rate: number;
  /** How many it strikes at most. */
  readonly times?: number;
  /** How long the call waits, such as "250ms". */
  readonly delay?: string;
  /** The code that the call is answered with, such as "UNAVAILABLE": one that it may have. */
  readonly code?: string;
  /** Whether it fails "before" anything has happened, which is the default, or "after" all has. */
  readonly when?: "before" | "after";
  /** A stream breaks after so many events. */
  readonly cut?: number;
}

export interface TestPetstore extends AsyncDisposable {
  /** The address of the API, such as "http://127.0.0.1:40001". */
  readonly url: string;
  /** The address of the admin port. */
  readonly adminUrl: string;
  /** A client for the API. */
  readonly client: Petstore;
  /** Begins anew: what was created since the start is gone, and ids begin at 1. `seed` draws other pets. */
  reset(options?: { readonly seed?: number }): Promise<void>;
  /** Moves the clock on by so many milliseconds. Resolves when what fell due is done. */
  advance(ms: number): Promise<void>;
  /** Replaces the faults; with [] nothing fails any more. */
  setFaults(faults: readonly Fault[]): Promise<void>;
  /** Ends the process. */
  stop(): Promise<void>;
}

/** What a process needs of the environment that it is started in. */
const INHERITED = ["PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SystemRoot", "NODE_COMPILE_CACHE", "NODE_EXTRA_CA_CERTS"];

const inherited = () => Object.fromEntries(INHERITED.map((name) => [name, process.env[name]]));

// In the repository the sources run as they are.
const program = import.meta.filename.endsWith(".ts")
  ? join(import.meta.dirname, "../../launcher/for-tests.ts")
  : join(import.meta.dirname, "for-tests.js");

/** Resolves when it can be used. Rejects with the reason if it can't start. */
export async function startPetstore({ env, now, ...options }: StartOptions = {}): Promise<TestPetstore> {
  const child = spawn(process.execPath, [program, JSON.stringify({ ...options, now: now?.getTime() })], {
    // By LAUNCHER_IPC the process reports here, and ends when this process is gone.
    env: { ...inherited(), LOG_LEVEL: "error", ...env, LAUNCHER_IPC: "1" },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const started = Promise.withResolvers<{ readonly url: string; readonly adminUrl: string }>();
  const refused = (why: string) => started.reject(new Error(`The petstore can't start. ${why}`));
  child.on("message", (report: Report) => {
    if (report.type === "ready") started.resolve(report);
    if (report.type === "refused") refused(report.message);
  });
  child.once("error", (error) => refused(error.message));
  child.once("exit", (code, signal) => refused(`It ended with ${signal ?? `exit code ${code}`}.`));
  const { url, adminUrl } = await started.promise;
  // Whoever forgets to stop it can end all the same.
  child.unref();
  child.channel?.unref();

  async function ask(method: "POST" | "PUT", path: string, body: object): Promise<void> {
    const answer = await fetch(adminUrl + path, { method, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(((await answer.json()) as { message: string }).message);
  }
  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const ended = once(child, "exit");
    if (child.connected) child.send({ type: "stop" }, () => {}); // it may just have ended
    await ended;
  }
  return {
    url,
    adminUrl,
    client: createPetstore({ baseUrl: url }),
    reset: (options = {}) => ask("POST", "/reset", options),
    advance: (ms) => ask("POST", "/clock", { advance: `${ms}ms` }),
    setFaults: (faults) => ask("PUT", "/faults", faults),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

type Report =
  | { readonly type: "ready"; readonly url: string; readonly adminUrl: string }
  | { readonly type: "refused"; readonly message: string }
  | { readonly type: "waiting" };
