/** From a process's first resource to its last: start, ready, stop, and what ends it in between. */
import { allocateYoung, collectAfterStart } from "./garbage.ts";
import type { Logger } from "./log.ts";

/** How long a stop may take before the process ends all the same. The launcher kills half a second later. */
export const STOP_LIMIT_MS = 9000;

export interface Running {
  readonly log: Logger;
  /** Where the process is reached. */
  readonly url: string;
  /** STOP_LIMIT_MS unless said otherwise. */
  readonly stopLimitMs?: number;
}

/** What a process tells the launcher that started it. */
export type Report =
  | { readonly type: "ready"; readonly url: string }
  /** It can't go on before somebody else is there. */
  | { readonly type: "waiting"; readonly what: string }
  /** It can't start, and a restart won't help. */
  | { readonly type: "refused"; readonly message: string }
  /** From now on it dies at the point that it was told. */
  | { readonly type: "armed" };

/** Takes what a start waits for, such as "MongoDB at db:27017: nothing answers there". */
export type WaitsFor = (what: string) => void;

/** What the launcher tells a process, or in tests of crashes a test. */
export type Command = { readonly type: "stop" } | { readonly type: "crash"; readonly at: string };

/**
 * Runs a process: `open` opens its resources one after the other and puts each on the stack; what was opened last is
 * closed first. So a store opened before its server outlives the server's last request. What it has to wait for, the
 * launcher is told.
 *
 * A failure to start is one line and exit code 1. SIGTERM, SIGINT and SIGHUP stop the process with exit code 0, a second
 * one ends it at once. Under the launcher, which starts processes with an IPC channel, SIGINT and SIGHUP are left to the
 * launcher (a terminal sends them to the whole group), and the process stops when it says so or is gone. An uncaught
 * error is logged and ends the process with exit code 1: its state can't be trusted any more. What the launcher says, or its end,
 * is no signal, the first or the second: a service manager tells both, in any order.
 */
export async function runProcess(
  open: (stack: AsyncDisposableStack, waitsFor: WaitsFor) => Promise<Running>,
): Promise<void> {
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

  let [stopping, signalled] = [false, false];
  const stop: Stop = async (why, codeIfAgain) => {
    if (signalled && codeIfAgain !== undefined) process.exit(codeIfAgain);
    signalled ||= codeIfAgain !== undefined;
    if (stopping) return;
    stopping = true;
    log?.info(`stopping: ${why}`);
    setTimeout(() => {
      log?.warn(`still not stopped after ${stopLimitMs} ms, the process ends all the same`);
      process.exit(1);
    }, stopLimitMs).unref();
    // Also in the middle of a start, which then fails at the next thing it puts on the stack.
    await stack.disposeAsync();
    log?.info("stopped");
    process.exit(0);
  };
  onEnd(stop);

  try {
    const running = await open(stack, (what) => void report({ type: "waiting", what }));
    ({ log, stopLimitMs = STOP_LIMIT_MS } = running);
    if (stopping) return;
    log.info(`ready at ${running.url}`);
    await report({ type: "ready", url: running.url });
    collectAfterStart();
  } catch (error) {
    if (stopping) return;
    await stack.disposeAsync().catch(() => {});
    await refuse(error);
  }
}

/** Of a signal: with what code the process ends at once where it has had one before. */
type Stop = (why: string, codeIfAgain?: number) => void;

function onEnd(stop: Stop): void {
  const launched = process.send !== undefined;
  process.on("SIGTERM", () => stop("SIGTERM", 143));
  process.on("SIGINT", () => launched || stop("SIGINT", 130));
  process.on("SIGHUP", () => launched || stop("SIGHUP", 129));
  process.on("message", (command: Command) => command.type === "stop" && stop("the launcher says so"));
  const gone = () => stop("the launcher is gone");
  process.on("disconnect", gone);
  // Unlike a message, that it goes is told to nobody who listens later.
  if (launched && !process.connected) gone();
}

async function refuse(error: unknown): Promise<never> {
  const launched = process.connected;
  if (launched) await report({ type: "refused", message: error instanceof Error ? error.message : `${error}` });
  if (!launched || isBug(error)) say(error);
  process.exit(1);
}

/** Resolves when it was sent, or when there is nobody to send it to. */
function report(message: Report): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (process.send && process.connected) process.send(message, undefined, undefined, () => resolve());
  else resolve();
  return promise;
}

/** For a mistake in the program the stack is the message. */
function say(error: unknown): void {
  const words = isBug(error) ? error.stack : error instanceof Error ? error.message : error;
  process.stderr.write(`${words}\n`);
}

const isBug = (error: unknown): error is Error =>
  [TypeError, ReferenceError, RangeError, SyntaxError].some((kind) => error instanceof kind);
