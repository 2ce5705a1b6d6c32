/** Runs the processes of the petstore as one: all are started at once, and all end together. */
import { join } from "node:path";
import { ConfigError } from "@petstore/runtime/environment";
import { NO_RESTART, SAME_SIGNAL_MS } from "@petstore/runtime/lifecycle";
import { instanceOf, processNames, replicasOf } from "../processes/names.ts";
import { bindSharedPort, type LauncherConfig } from "./config.ts";
import { prepare } from "./prepare.ts";
import { type Endpoint, paint, say, welcome } from "./screen.ts";
import { type Child, ChildDied, type Program, type Surroundings, supervise } from "./supervisor.ts";

/** Time limit of a stop in milliseconds, plus the gateway's lame-duck time: what has not ended by then is killed. */
const STOP_LIMIT_MS = 9_500;

/** How often the launcher says what it waits for, in milliseconds. */
const PROGRESS_MS = 2000;

const root = join(import.meta.dirname, "..");
/** The five processes of the petstore, or more by REPLICAS. */
const petstore = ({ replicas }: LauncherConfig): readonly Program[] =>
  processNames.flatMap((kind) => {
    const args = kind === "gateway" ? [join(root, "gateway/main.ts")] : [join(root, "services/main.ts"), kind];
    const count = replicasOf(replicas, kind);
    return Array.from({ length: count }, (_, i) => ({
      name: instanceOf(kind, i + 1, count),
      kind,
      args,
      environment: { REPLICA: `${i + 1}` },
      // A refused request costs the gateway little, and an admitted one costs the services much. Behind them it could do
      // neither in time.
      goesFirst: kind === "gateway",
    }));
  });

/**
 * Starts the programs, and ends this process when they have ended: with 0 after a stop, with 1 if one can't start.
 * `startedBy` is the process id of npm. `backoff` is given in tests.
 */
export async function launch(
  startedBy: number | undefined,
  programs: (config: LauncherConfig) => readonly Program[] = petstore,
  backoff?: Surroundings["backoff"],
): Promise<void> {
  const startedAt = performance.now();
  const children: Child[] = [];
  let stopLimitMs = STOP_LIMIT_MS;
  const { stop, isStopping } = createStop(children, () => stopLimitMs);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => void stop(`${signal}: stopping`, 0));
  }
  const giveUp = (why: string) => void stop(`${paint("red", "The petstore ends.")} ${why}`, NO_RESTART);
  try {
    const config = await prepare(startedBy, () => isStopping() || stop("npm is gone: stopping", 0));
    const { environment, sharedPort, lameDuckMs } = config;
    if (Number(environment.ADMIN_PORT) > 0)
      throw new ConfigError([
        `ADMIN_PORT=${environment.ADMIN_PORT} is one port, and each process has its own: leave it out, for the ports 100 above ` +
          "theirs, or set it to off, or to 0 for any that are free.",
      ]);
    stopLimitMs += lameDuckMs;
    const shared = sharedPort && (await bindSharedPort(sharedPort));
    for (const program of programs(config)) {
      const socket = program.kind === "gateway" ? shared : undefined;
      children.push(supervise(program, { environment, say, giveUp, socket, backoff }));
    }
    const endpoints = await allReady(children);
    if (!isStopping()) say(welcome(endpoints, (performance.now() - startedAt) / 1000, config));
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof ChildDied)) throw error;
    await stop(`${paint("red", "The petstore can't start.")} ${error.message}`, 1);
  }
}

async function allReady(children: readonly Child[]): Promise<readonly Endpoint[]> {
  const ready = new Set<Child>();
  const tell = () => {
    const missing = children.filter((child) => !ready.has(child));
    const causes = new Set(missing.flatMap((child) => child.waitsFor() ?? []));
    const names = missing.map(({ name }) => name).join(", ");
    say(`waiting for ${names} ...${[...causes].map((cause) => ` (${cause})`).join("")}`);
  };
  const progress = setInterval(tell, PROGRESS_MS);
  try {
    return await Promise.all(
      children.map(async (child) => {
        const url = await child.ready;
        ready.add(child);
        return { name: child.name, kind: child.kind, url };
      }),
    );
  } finally {
    clearInterval(progress);
  }
}

/** `stop` ends all children and then this process. Called again after SAME_SIGNAL_MS, it kills what still runs. */
function createStop(children: readonly Child[], limitMs: () => number) {
  let stopping = false;
  let stoppedAt = 0;
  const killAll = (why: string) => {
    say(why);
    for (const child of children) child.kill();
  };
  const stop = async (why: string, code: number): Promise<void> => {
    if (stopping && performance.now() - stoppedAt < SAME_SIGNAL_MS) return;
    if (stopping) return killAll("asked twice: killing what still runs");
    stopping = true;
    stoppedAt = performance.now();
    say(why);
    setTimeout(() => killAll(`not ended within ${limitMs() / 1000} s: killing what still runs`), limitMs()).unref();
    // A terminal or a service manager may have signalled the children, too: one that ends now has not crashed.
    for (const child of children) child.leave();
    // The gateway first: its last requests need the services.
    const isGateway = (child: Child) => child.kind === "gateway";
    await Promise.all(children.filter(isGateway).map((child) => child.stop()));
    await Promise.all(children.filter((child) => !isGateway(child)).map((child) => child.stop()));
    if (code === 0) say("stopped");
    process.exit(code);
  };
  return { stop, isStopping: () => stopping };
}
