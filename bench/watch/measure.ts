/** Measures what a thousand watchers cost a service and its writers, and how soon they get the events. */
import { fork } from "node:child_process";
import { getPriority } from "node:os";
import { join } from "node:path";
import { tryPriority } from "@petstore/runtime/lifecycle";
import { portOf } from "../../processes/names.ts";
import { freePorts } from "../../test/harness/instances.ts";
import { fill, start } from "../compare/running.ts";
import { openSurroundings, type Surroundings } from "../compare/surroundings.ts";
import { cpu, machineCpu } from "../measure/proc.ts";
import type { Place } from "../peer.ts";
import { nameOf, onMongodb, petstore } from "../peers/petstore/peer.ts";
import type { Progress } from "../progress.ts";
import { inspectable, type Memory, openMemory } from "./memory.ts";
import type { Quantiles } from "./quantiles.ts";
import type { Asked, Delays } from "./watchers-child.ts";
import { createWriter } from "./writes.ts";

export const stores = ["mongodb", "embedded"] as const;
export type StoreName = (typeof stores)[number];

export interface Settings {
  readonly watchers: number;
  /** Streams per connection. */
  readonly perConnection: number;
  /** Writes per second. */
  readonly rate: number;
  /** Duration of one turn. */
  readonly seconds: number;
  readonly rounds: number;
}

/** A period in which pets were written, with watchers or without. */
export interface Turn {
  readonly round: number;
  readonly watchers: number;
  readonly stored: number;
  readonly failed: number;
  /** Delays of writes, in milliseconds from when they were due. */
  readonly writes: Quantiles;
  readonly events?: Delays;
  /** Share of one core, 0 to 1, by process. */
  readonly cpu: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** Share of the machine's time used by other processes. */
  readonly others: number;
}

/** Memory of the pet process, before and after the watchers were opened; no events are sent. */
export interface Idle {
  readonly perConnection: number;
  readonly before: Memory;
  readonly after: Memory;
}

export interface WatchResults {
  /** ISO 8601 */
  readonly at: string;
  readonly machine: Omit<Surroundings["machine"], "generator">;
  readonly settings: Settings;
  readonly idle: readonly Idle[];
  readonly stores: readonly { readonly store: StoreName; readonly turns: readonly Turn[] }[];
}

/** By how much niceness is lowered, if the system allows that: other processes then wait for what is measured. */
const FIRST = 10;
/** Number of pets in the store. */
const PETS = 1_000;
const [WARM_UP_SECONDS, WARM_UP_RATE] = [3, 20];
/**
 * Watchers before the measurement of memory: enough to compile the code, too few to take memory that others would have taken.
 */
const FIRST_WATCHERS = 20;

export async function measureWatch(
  settings: Settings,
  chosen: readonly StoreName[],
  progress: Progress,
): Promise<WatchResults> {
  tryPriority(process.pid, getPriority() - FIRST); // inherited by all processes started from here
  await using stack = new AsyncDisposableStack();
  const { machine, mongod, place } = await openSurroundings(stack);
  const { generator: _, ...rest } = machine;
  const idle: Idle[] = [];
  const found: WatchResults["stores"][number][] = [];
  for (const store of chosen) {
    progress.say(`${store}: ${PETS} pets`);
    const at = () => place(`watch-${store}`);
    await fill(store === "mongodb" ? "petstore" : "embedded", await at(), PETS);
    // The store makes no difference to idle watchers. Each measurement has its own process, since one keeps memory for long.
    const isFirst = store === chosen[0];
    if (isFirst) {
      progress.say("memory of idle watchers, each on a connection of its own");
      await withPetstore(store, await at(), mongod, async (it) =>
        idle.push(await it.idle({ ...settings, perConnection: 1 })),
      );
    }
    const turns: Turn[] = [];
    await withPetstore(store, await at(), mongod, async (it) => {
      if (isFirst) {
        progress.say(`memory of idle watchers, ${settings.perConnection} to a connection`);
        idle.push(await it.idle(settings));
      }
      for (let round = 1; round <= settings.rounds; round++)
        for (const watchers of round % 2 === 1 ? [0, settings.watchers] : [settings.watchers, 0]) {
          progress.say(`${store}: round ${round} of ${settings.rounds}, ${watchers} watchers`);
          turns.push(await it.turn(round, watchers, settings));
        }
    });
    found.push({ store, turns });
  }
  return { at: new Date().toISOString(), machine: rest, settings, idle, stores: found };
}

async function withPetstore<R>(
  store: StoreName,
  place: Place,
  mongod: number,
  work: (measured: ReturnType<typeof measuring>) => Promise<R>,
): Promise<R> {
  const inspector = await freePorts();
  const env = { NODE_OPTIONS: inspectable(inspector) };
  const about = { name: store, title: store, data: "petstore" } as const;
  const running = await start(
    petstore(about, (at) => ({ ...env, ...(store === "mongodb" ? onMongodb(at) : { DATA_DIR: at.dataDir }) })),
    place,
  );
  const child = startWatchers();
  try {
    const pids = new Map([...running.pids.map((pid): [string, number] => [nameOf(pid), pid]), ["mongod", mongod]]);
    const measured = measuring(portOf("pet", place.port), inspector, child, pids);
    await measured.warmUp();
    return await work(measured);
  } finally {
    child.stop();
    await running.stop();
  }
}

function startWatchers() {
  const child = fork(join(import.meta.dirname, "watchers-child.ts"), { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  let answered = (_: { readonly result?: unknown; readonly error?: string }) => {};
  child.on("message", (message: object) => answered(message));
  child.once("exit", () => answered({ error: "The watchers died." }));
  return {
    pid: child.pid as number,
    ask: <R>(asked: Asked) =>
      new Promise<R>((resolve, reject) => {
        answered = ({ result, error }) => (error === undefined ? resolve(result as R) : reject(new Error(error)));
        child.send(asked);
      }),
    stop() {
      child.disconnect();
      process.off("exit", kill);
    },
  };
}

function measuring(
  port: number,
  inspector: number,
  { pid, ask }: ReturnType<typeof startWatchers>,
  servers: ReadonlyMap<string, number>,
) {
  const all = new Map([...servers, ["watchers", pid], ["writer", process.pid]]);
  const write = createWriter(port);
  const open = (watchers: number, perConnection: number) => ask({ open: { port, watchers, perConnection } });
  const close = () => ask({ close: true });
  const read = () => ({
    at: performance.now(),
    cpu: new Map([...all].map(([name, one]) => [name, cpu([one])])),
    machine: machineCpu(),
  });

  return {
    async warmUp(): Promise<void> {
      await open(FIRST_WATCHERS, 1);
      await write(WARM_UP_SECONDS, WARM_UP_RATE);
      await close();
    },

    async idle({ watchers, perConnection }: Settings): Promise<Idle> {
      const memory = await openMemory(servers.get("pet") as number, inspector);
      const before = await memory();
      await open(watchers, perConnection);
      const after = await memory();
      await close();
      return { perConnection, before, after };
    },

    async turn(round: number, watchers: number, { perConnection, seconds, rate }: Settings): Promise<Turn> {
      if (watchers > 0) await open(watchers, perConnection);
      // Excludes work after an idle time, and code that is not yet compiled.
      await write(1, rate);
      const before = read();
      const { stored, failed, delays } = await write(seconds, rate);
      const events = watchers > 0 ? await ask<Delays>({ delays: stored }) : undefined;
      const after = read();
      if (watchers > 0) await close();
      const micros = (after.at - before.at) * 1000;
      const spent = new Map(
        [...all.keys()].map((name) => [name, (after.cpu.get(name) ?? 0) - (before.cpu.get(name) ?? 0)]),
      );
      const ours = spent.values().reduce((sum, one) => sum + one, 0);
      return {
        round,
        watchers,
        stored: stored.length,
        failed,
        writes: delays,
        ...(events && { events }),
        cpu: Object.fromEntries(spent.entries().map(([name, one]) => [name, one / micros])),
        seconds: micros / 1e6,
        others:
          Math.max(0, after.machine.busy - before.machine.busy - ours) / (after.machine.total - before.machine.total),
      };
    },
  };
}
