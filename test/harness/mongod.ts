/**
 * A real MongoDB for tests: finds a `mongod` and starts temporary replica sets. However the test process ends, the servers end
 * too: each runs under a shell that waits for the end of its input.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { MongoClient } from "mongodb";
import type { Machine } from "./network.ts";
import { findProgram, isExecutable } from "./programs.ts";

/** Time limit of a start or an election. Generous, since the machine may be busy with other tests. */
const PATIENCE_MS = 60_000;

/** Where `.ci/mongod` puts the server that it downloads. */
const FETCHED = join(import.meta.dirname, "../../node_modules/.cache/mongod/mongod");

/** The server's program: MONGOD, or the first `mongod` in the PATH, or the downloaded one. */
export function findMongod(environment: Readonly<Record<string, string | undefined>> = process.env) {
  if (environment.MONGOD) return isExecutable(environment.MONGOD) ? environment.MONGOD : undefined;
  return findProgram("mongod", { path: environment.PATH, others: [FETCHED] });
}

/** For `test.skipIf(...)`: `missing-tools-reporter.ts` mentions it, and with CI=true the run fails before it starts. */
export const mongodMissing = findMongod() === undefined;

export interface Member {
  /** "127.0.0.1:27017" */
  readonly host: string;
  readonly port: number;
  signal(signal: NodeJS.Signals): void;
  /** Kills the member if it still runs, and starts it again on its data. */
  restart(): Promise<void>;
}

export interface ReplicaSet extends AsyncDisposable {
  readonly uri: string;
  readonly members: readonly Member[];
  /** The member that was elected last of those that report to be primary. Waits for one if there is none. */
  primary(): Promise<Member>;
  /** Ends all members and removes their data. */
  stop(): Promise<void>;
}

export interface ReplicaSetOptions {
  readonly members?: 1 | 3;
  /** How long a silent primary is taken to be alive, in milliseconds. */
  readonly electionTimeoutMillis?: number;
  readonly arguments?: readonly string[];
  /** The machines of the members, if not this one. */
  readonly machines?: readonly Machine[];
  /** The directory that their data is put into, if not that of the system's temporary files. */
  readonly within?: string;
}

/** Starts a replica set. Resolves when it is writable. */
export async function startReplicaSet(options: ReplicaSetOptions = {}): Promise<ReplicaSet> {
  const { members: count = 1, electionTimeoutMillis = 2000, machines = [], within = tmpdir() } = options;
  const dir = mkdtempSync(join(within, "mongod-"));
  const ports = await freePorts(count);
  const processes: Mongod[] = [];
  const stop = async () => {
    await Promise.all(processes.map((process) => process.stop()));
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const args = ["--replSet", "rs", ...(options.arguments ?? [])];
    for (const [i, port] of ports.entries()) {
      processes.push(await startMongod({ port, dir: join(dir, `${port}`), args, machine: machines[i] }));
    }
    const hosts = processes.map(({ host }, _id) => ({ _id, host }));
    const settings = { electionTimeoutMillis, heartbeatIntervalMillis: 500, catchUpTimeoutMillis: 2000 };
    await ask(processes[0]?.host, { replSetInitiate: { _id: "rs", members: hosts, settings } });
    const primary = () => findPrimary(processes);
    await primary();
    const uri = `mongodb://${hosts.map(({ host }) => host).join(",")}/?replicaSet=rs`;
    return { uri, members: processes, primary, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Mongod extends Member {
  stop(): Promise<void>;
}

/** Restarts the server at each line of input, and ends with it at the end of the input. $0 is the data's directory. */
const KEEPER = `while :; do
  "$@" </dev/null >/dev/null 2>&1 & echo $!
  read -r again; more=$?
  kill -9 $! 2>/dev/null; wait
  [ $more = 0 ] || break
done; rm -rf "$0"`;

export interface MongodOptions {
  readonly port: number;
  /** The directory of its data, which is removed when it ends. */
  readonly dir: string;
  readonly args?: readonly string[];
  readonly machine?: Machine | undefined;
}

const here: Machine = { address: "127.0.0.1", prefix: [] };

/** Starts one server. Resolves when it answers. */
export async function startMongod({ port, dir, args = [], machine = here }: MongodOptions) {
  const program = findMongod();
  if (!program) throw new Error("There is no mongod: set MONGOD to its path.");
  mkdirSync(dir, { recursive: true });
  const command = [
    ...[...machine.prefix, program, "--port", `${port}`, "--bind_ip", machine.address],
    ...["--dbpath", dir, "--nounixsocket"],
    ...["--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "64", "--logpath", join(dir, "log"), "--logappend"],
    ...["--setParameter", "diagnosticDataCollectionEnabled=false", ...args],
  ];
  const keeper: ChildProcess = spawn("sh", ["-c", KEEPER, dir, ...command], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = once(keeper, "exit");
  const pids = createInterface({ input: keeper.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const nextPid = async () => Number((await pids.next()).value);
  let pid = await nextPid();
  const host = `${machine.address}:${port}`;
  const server: Mongod = {
    host,
    port,
    signal: (signal) => void process.kill(pid, signal),
    async restart() {
      keeper.stdin?.write("again\n");
      pid = await nextPid();
      await answers(host);
    },
    async stop() {
      keeper.stdin?.end();
      await ended;
    },
  };
  try {
    await answers(host);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function answers(host: string): Promise<void> {
  await until(() => ask(host, { ping: 1 }), `mongod at ${host} did not start`);
}

async function findPrimary(members: readonly Mongod[]): Promise<Mongod> {
  return until(async () => {
    const hellos = await Promise.allSettled(members.map(({ host }) => ask(host, { hello: 1 })));
    const primaries = members.flatMap((member, i) => {
      const hello = hellos[i];
      const { isWritablePrimary, electionId } = (hello?.status === "fulfilled" && hello.value) || {};
      return isWritablePrimary ? [{ member, election: `${electionId}` }] : [];
    });
    const [last] = primaries.sort((a, b) => (a.election < b.election ? 1 : -1));
    if (!last) throw new Error("no primary");
    return last.member;
  }, "no member became primary");
}

async function until<T>(attempt: () => Promise<T>, otherwise: string): Promise<T> {
  for (const limit = Date.now() + PATIENCE_MS; ; await sleep(50)) {
    try {
      return await attempt();
    } catch (cause) {
      if (Date.now() > limit) throw new Error(otherwise, { cause });
    }
  }
}

/** Sends a command to one server, whatever its state in the set. */
export async function ask(host: string | undefined, command: object) {
  const uri = `mongodb://${host}/?directConnection=true`;
  const limits = { serverSelectionTimeoutMS: 1000, connectTimeoutMS: 1000, socketTimeoutMS: 20_000 };
  const client = new MongoClient(uri, limits);
  try {
    return await client.db("admin").command({ ...command });
  } finally {
    await client.close();
  }
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  return ports;
}
