/** Keeps child processes running: starts them, starts them again when they crash, stops them. */
import { type ChildProcess, spawn } from "node:child_process";
import type { BoundSocket } from "node:net";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Environment } from "@petstore/runtime/environment";
import { type Command, LAUNCHED, NO_RESTART, type Report, tryPriority } from "@petstore/runtime/lifecycle";

/** Pause before a crashed child is started again, in milliseconds; doubles with each crash. */
const defaultBackoff = { firstMs: 500, longestMs: 10_000 };

/** After it was ready for this long, a child that crashes gets the shortest pause again. */
const STEADY_MS = 30_000;

/** A child that is ready is pinged this often, in milliseconds. */
const PING_MS = 1000;

/**
 * A child that has not answered so many pings is killed. Pings are counted, and not the time: no ping is sent while this
 * process itself does not run, as in a machine that was suspended.
 */
const UNANSWERED = 10;

export interface Program {
  /** Shown to people. Unique. */
  readonly name: string;
  /** The kind of process, which replicas have in common. */
  readonly kind: string;
  /** Arguments of Node: the script and its own. */
  readonly args: readonly string[];
  readonly environment?: Environment;
  /** Gets a higher priority, for when there are more processes than processors, if this user may set it (only root may). */
  readonly goesFirst?: boolean;
}

export type Child = ReturnType<typeof supervise>;

/** A child ended before it was ready. The message says why, as far as it is known. */
export class ChildDied extends Error {
  override readonly name = "ChildDied";
}

export interface Surroundings {
  readonly environment: Environment;
  /** Prints one line for people. */
  readonly say: (line: string) => void;
  /** Called with the reason when the child has ended and must not be started again. */
  readonly giveUp: (why: string) => void;
  /** The socket that the child listens on: file descriptor 3, announced by LISTEN_FDS as for systemd's sd_listen_fds(3). */
  readonly socket?: BoundSocket | undefined;
  readonly backoff?: typeof defaultBackoff | undefined;
  readonly pingMs?: number;
}

/**
 * Starts a program, and starts it again whenever it ends after it was ready once. One whose event loop no longer answers is
 * ended (SIGKILL, as it would not hear SIGTERM).
 */
export function supervise(program: Program, surroundings: Surroundings) {
  const { say, giveUp, socket, backoff = defaultBackoff, pingMs = PING_MS } = surroundings;
  const firstReady = Promise.withResolvers<string>();
  const stopping = new AbortController();
  let current: ChildProcess | undefined;
  let waitsFor: string | undefined;

  async function runOnce(again: boolean): Promise<{ why: string; steady: boolean; isFinal?: boolean }> {
    let readyAt: number | undefined;
    let cause: string | undefined;
    let unanswered = 0;
    let pings: NodeJS.Timeout | undefined;
    let child: ChildProcess;
    try {
      // Without the flag, SIGUSR1 would open the inspector, by which everybody on this machine could run code in the process.
      child = spawn(process.execPath, ["--disable-sigusr1", ...program.args], {
        env: {
          ...surroundings.environment,
          ...program.environment,
          ...(socket && { LISTEN_FDS: "1" }),
          [LAUNCHED]: "1",
        },
        stdio: ["ignore", "inherit", "inherit", ...(socket ? [socket.fd()] : []), "ipc"],
      });
    } catch (error) {
      // Node throws some failures of the system, such as a lack of memory, and emits the others as an event.
      return { why: (error as Error).message, steady: false };
    }
    current = child;
    if (program.goesFirst && child.pid !== undefined) tryPriority(child.pid, constants.priority.PRIORITY_HIGH);
    const ping = () => {
      if (stopping.signal.aborted) return;
      if (unanswered++ < UNANSWERED) return send(child, { type: "ping" });
      cause = `it has not answered for ${(UNANSWERED * pingMs) / 1000} s and was killed`;
      child.kill("SIGKILL");
    };
    child.on("message", (report: Report) => {
      unanswered = 0;
      if (report.type === "refused") cause = report.message;
      if (report.type === "waiting") waitsFor = report.what;
      if (report.type !== "ready") return;
      readyAt = performance.now();
      firstReady.resolve(report.url);
      pings = setInterval(ping, pingMs);
      if (again) say(`${program.name} is back at ${report.url}`);
    });
    const why = await ended(child);
    clearInterval(pings);
    current = undefined;
    return {
      why: cause ?? why,
      steady: readyAt !== undefined && performance.now() - readyAt > STEADY_MS,
      isFinal: child.exitCode === NO_RESTART,
    };
  }

  async function run(): Promise<void> {
    let backoffMs = backoff.firstMs;
    let wasReady = false;
    firstReady.promise.then(
      () => (wasReady = true),
      () => {},
    );
    for (let again = false; !stopping.signal.aborted; again = true) {
      const { why, steady, isFinal } = await runOnce(again);
      if (stopping.signal.aborted) return;
      if (!wasReady) return firstReady.reject(new ChildDied(`${program.name}: ${why}`));
      if (isFinal) return giveUp(`${program.name} can't go on, and its log says why`);
      if (steady) backoffMs = backoff.firstMs;
      say(`${program.name} ended (${why}); starting it again in ${backoffMs / 1000} s`);
      await sleep(backoffMs, undefined, { signal: stopping.signal }).catch(() => {});
      backoffMs = Math.min(backoffMs * 2, backoff.longestMs);
    }
  }

  const running = run();
  return {
    name: program.name,
    kind: program.kind,
    /** Its address, once it has reported that it is ready. Rejects with `ChildDied` if it ends before. */
    ready: firstReady.promise,
    /** What it last reported that its start waits for. */
    waitsFor: () => waitsFor,
    /** From now on it is not started again. */
    leave: () => stopping.abort(),
    /** Asks it to stop and resolves when it has. It is not started again. */
    async stop(): Promise<void> {
      stopping.abort();
      if (current) send(current, { type: "stop" });
      await running;
    },
    /** Ends it at once (SIGKILL). */
    kill: () => void current?.kill("SIGKILL"),
  };
}

/** A child that has just ended can't be told anything. */
function send(child: ChildProcess, command: Command): void {
  if (child.connected) child.send(command, () => {});
}

/** Resolves when a child has ended, to the reason in words. */
async function ended(child: ChildProcess): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  child.once("error", (error) => resolve(error.message));
  child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
  return promise;
}
