/** The whole petstore as `npm start` runs it, with several replicas of each process, which can be restarted one by one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { instanceOf, type ProcessName, portOf, processNames, type ServiceName } from "../../processes/names.ts";
import { freePorts } from "./instances.ts";

/** Processes are found in /proc. */
export const procMissing = !existsSync("/proc/self/environ");

export interface Launched extends AsyncDisposable {
  /** The address that all gateways share. */
  readonly http: string;
  /** The environment of the launcher. */
  readonly environment: Readonly<Record<string, string>>;
  /** The addresses of all replicas of a service. */
  urls(service: ServiceName): readonly string[];
  /** The names of all processes, such as "pet-2". */
  readonly names: readonly string[];
  /**
   * Sends SIGTERM. Resolves when the launcher has restarted the process, and every service has all its replicas. Rejects if
   * the process did not end in order.
   */
  restart(name: string): Promise<void>;
  /** The output of the launcher and of all processes so far. Only warnings and worse are logged. */
  output(): string;
}

const here = join(import.meta.dirname, "../..");

/** `root`: where its code is. */
export async function launch(
  mongodbUri: string,
  replicas: number,
  env: Record<string, string>,
  root = here,
): Promise<Launched> {
  const portBase = await freePorts(replicas);
  const environment = {
    PATH: process.env.PATH ?? "",
    NODE_COMPILE_CACHE: join(here, "node_modules/.cache/compile"),
    MONGODB_URI: mongodbUri,
    PORT_BASE: `${portBase}`,
    REPLICAS: processNames.map((name) => `${name}:${replicas}`).join(","),
    LOG_LEVEL: "warn",
    LOG_FORMAT: "json",
    ...env,
  };
  const child = spawn(process.execPath, ["launcher/main.ts"], {
    cwd: root,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const kill = () => child.kill("SIGKILL"); // its processes end with it
  process.once("exit", kill);
  const ended = once(child, "close");
  let output = "";
  let changed = Promise.withResolvers<void>();
  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
      wake();
    });
  child.once("close", wake);

  /** Waits until the pattern was printed this many times. Resolves with the matches. */
  async function printed(pattern: RegExp, times: number): Promise<readonly string[]> {
    for (;;) {
      const found = output.match(pattern) ?? [];
      if (found.length >= times) return found;
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`The launcher ended:\n${output}`);
      await changed.promise;
    }
  }

  const http = `http://127.0.0.1:${portBase}`;
  /** Whether a gateway finds all replicas. Any of the gateways may answer. */
  async function isWhole(): Promise<boolean> {
    const answer = await fetch(`${http}/readyz`, { headers: { connection: "close" } });
    const said = await answer.text();
    return said.includes('"failing":[]') && !said.includes("degraded");
  }

  const instances = processNames.flatMap((kind) =>
    Array.from({ length: replicas }, (_, i) => ({ kind, replica: i + 1, name: instanceOf(kind, i + 1, replicas) })),
  );
  const restarts = new Map<string, number>();

  await printed(/is ready/, 1);
  return {
    http,
    environment,
    urls: (service) =>
      Array.from({ length: replicas }, (_, i) => `http://127.0.0.1:${portOf(service, portBase, i + 1)}`),
    names: instances.map(({ name }) => name),
    async restart(name) {
      const one = instances.find((instance) => instance.name === name);
      if (!one) throw new Error(`There is no ${name}.`);
      const times = (restarts.get(name) ?? 0) + 1;
      restarts.set(name, times);
      process.kill(pidOf(child.pid as number, one.kind, one.replica), "SIGTERM");
      const end = (await printed(new RegExp(`^${name} ended .*$`, "gm"), times)).at(-1);
      if (!end?.includes("(exit code 0)")) throw new Error(`${end}:\n${output.slice(-5_000)}`);
      await printed(new RegExp(`^${name} is back at .*$`, "gm"), times);
      while (!(await isWhole())) await sleep(250);
    },
    output: () => output,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
      process.off("exit", kill);
    },
  };
}

/** The process id of a replica among the launcher's children. */
function pidOf(launcher: number, kind: ProcessName, replica: number): number {
  const script = kind === "gateway" ? /gateway\/main\.ts\0$/ : new RegExp(`services/main\\.ts\\0${kind}\\0$`);
  const children = readdirSync(`/proc/${launcher}/task`).flatMap((task) =>
    readFileSync(`/proc/${launcher}/task/${task}/children`, "utf8").split(" ").filter(Boolean),
  );
  const isOne = (pid: string) =>
    script.test(readFileSync(`/proc/${pid}/cmdline`, "utf8")) &&
    readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`REPLICA=${replica}`);
  const pid = children.find(isOne);
  if (pid === undefined) throw new Error(`There is no process of ${kind} with the number ${replica}.`);
  return Number(pid);
}
