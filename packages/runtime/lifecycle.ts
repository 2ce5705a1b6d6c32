/** The lifecycle of a process: start, ready, stop, and the errors that end it. */
import { setPriority } from "node:os";
import { realTime } from "./clock.ts";
import type { Environment } from "./environment.ts";
import { allocateYoung, collectAfterStart } from "./garbage.ts";
import type { Logger } from "./log.ts";

/** Time limit of a stop, in milliseconds; then the process ends all the same. The launcher kills it half a second later. */
export const STOP_LIMIT_MS = 9000;

/**
 * The exit code of a process that can't go on until somebody has repaired what it needs: EX_CONFIG of sysexits.h. A service
 * manager can be told not to restart it then, such as systemd by RestartPreventExitStatus.
 */
export const NO_RESTART = 78;

export interface Running {
  readonly log: Logger;
  readonly url: string;
  readonly adminUrl?: string | undefined;
  readonly stopLimitMs?: number;
}

/** A message from a process to the launcher that started it. */
export type Report =
  | { readonly type: "ready"; readonly url: string; readonly adminUrl?: string | undefined }
  /** Its start waits for something else. */
  | { readonly type: "waiting"; readonly what: string }
  /** It can't start, and a restart won't help. */
  | { readonly type: "refused"; readonly message: string }
  /** Its event loop turns: the answer to a ping. */
  | { readonly type: "alive" }
  /** For tests: from now on it dies at the failpoint that it was given. */
  | { readonly type: "armed" };

/** Reports what a start waits for, such as "MongoDB at db:27017: nothing answers there". */
export type WaitsFor = (what: string) => void;

/** A message from the launcher to a process or, in crash tests, from the test. */
export type Command =
  | { readonly type: "stop" }
  | { readonly type: "ping" }
  | { readonly type: "crash"; readonly at: string };

/**
 * The variable by which a launcher says that the IPC channel of a process is its own. Others, such as pm2 and Node's `fork`,
 * open a channel too, and neither read reports nor stop a process by it.
 */
export const LAUNCHED = "LAUNCHER_IPC";

/** A signal repeated within this time counts as one, in milliseconds: npm passes on what a terminal sends to both. */
export const SAME_SIGNAL_MS = 500;

/** Calls `act` for each command of this type. Other messages are ignored: any parent may send some. */
export function onCommand<T extends Command["type"]>(
  type: T,
  act: (command: Extract<Command, { readonly type: T }>) => void,
): void {
  process.on("message", (message: Extract<Command, { readonly type: T }> | null) => {
    if (message?.type === type) act(message);
  });
}

/**
 * Runs a process: `open` opens its resources one after the other and puts each on the stack; what was opened last is
 * closed first. So a store opened before its server outlives the server's last request. `waitsFor` reports to the
 * launcher what the start waits for.
 *
 * A failure to start prints one line and ends the process with exit code 1. SIGTERM, SIGINT and SIGHUP stop the process
 * with exit code 0; a second signal ends it at once. An uncaught error is logged and ends the process with exit code 1,
 * because its state can't be trusted any more.
 *
 * Under the launcher, which starts processes with an IPC channel and `LAUNCHED` in their `environment`, the process ignores
 * SIGINT and SIGHUP (a terminal sends them to the whole group), and stops when the launcher says so or is gone. That counts
 * neither as a first nor as a second signal, because a service manager signals both, in any order.
 */
export async function runProcess(
  open: (stack: AsyncDisposableStack, waitsFor: WaitsFor) => Promise<Running>,
  environment: Environment = {},
): Promise<void> {
  const launched = process.send !== undefined && environment[LAUNCHED] !== undefined;
  const report = launched ? send : async () => {};
  allocateYoung();
  const stack = new AsyncDisposableStack();
  let log: Logger | undefined;
  let stopLimitMs = STOP_LIMIT_MS;
  const crash = (err: unknown) => {
    if (log) log.fatal({ err }, "uncaught error, the process ends");
    else say(err);
    process.exit(1);
  };
  process.once("uncaughtException", crash); // unhandled rejections among them

  let stopping = false;
  let signalledAt: number | undefined;
  const stop: Stop = async (why, codeIfAgain) => {
    if (codeIfAgain !== undefined) {
      const now = realTime.clock();
      signalledAt ??= now;
      if (now - signalledAt > SAME_SIGNAL_MS) process.exit(codeIfAgain);
    }
    if (stopping) return;
    stopping = true;
    log?.info(`stopping: ${why}`);
    setTimeout(() => {
      log?.warn(`still not stopped after ${stopLimitMs} ms, the process ends all the same`);
      process.exit(1);
    }, stopLimitMs).unref();
    // Also stops a start that is under way: it fails when it next puts something on the stack.
    await stack.disposeAsync();
    log?.info("stopped");
    process.exit(0);
  };
  onEnd(stop, launched);

  try {
    const running = await open(stack, (what) => void report({ type: "waiting", what }));
    ({ log, stopLimitMs = STOP_LIMIT_MS } = running);
    if (stopping) return;
    log.info(`ready at ${running.url}`);
    await report({ type: "ready", url: running.url, adminUrl: running.adminUrl });
    collectAfterStart();
  } catch (error) {
    if (stopping) return;
    await stack.disposeAsync().catch(() => {});
    const isHeard = launched && process.connected;
    await report({ type: "refused", message: error instanceof Error ? error.message : `${error}` });
    if (!isHeard || isBug(error)) say(error);
    process.exit(1);
  }
}

/** `codeIfAgain` is given for signals: the exit code of a second one, which ends the process at once. */
type Stop = (why: string, codeIfAgain?: number) => void;

function onEnd(stop: Stop, launched: boolean): void {
  process.on("SIGTERM", () => stop("SIGTERM", 143));
  process.on("SIGINT", () => launched || stop("SIGINT", 130));
  process.on("SIGHUP", () => launched || stop("SIGHUP", 129));
  if (!launched) return;
  onCommand("ping", () => void send({ type: "alive" }));
  onCommand("stop", () => stop("the launcher says so"));
  const gone = () => stop("the launcher is gone");
  process.on("disconnect", gone);
  // Unlike a message, the end of the channel is not reported to listeners that are added later.
  if (!process.connected) gone();
}

/** Resolves when the message was sent, or when the launcher is gone. */
function send(report: Report): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (process.send && process.connected) process.send(report, undefined, undefined, () => resolve());
  else resolve();
  return promise;
}

/** Prints the error; for a bug, its stack. */
function say(error: unknown): void {
  const words = isBug(error) ? error.stack : error instanceof Error ? error.message : error;
  process.stderr.write(`${words}\n`);
}

const isBug = (error: unknown): error is Error =>
  [TypeError, ReferenceError, RangeError, SyntaxError].some((kind) => error instanceof kind);

/** Sets the priority of a process when processors are scarce, if this user may: only root may raise it. */
export function tryPriority(pid: number, priority: number): void {
  try {
    setPriority(pid, priority);
  } catch {
    // This user may not, or the process has ended already.
  }
}
