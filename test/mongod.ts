/**
 * A real MongoDB for tests: finds a `mongod` and starts throw-away replica sets. Whatever ends the test process, the
 * servers end too: each runs under a shell that waits for the end of its input.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { MongoClient } from "mongodb";

/** A start or an election that takes longer has failed; generous, for the machine may be busy with other tests. */
const PATIENCE_MS = 60_000;

/** Where `.ci/mongod` puts the one that it fetches. */
const FETCHED = join(import.meta.dirname, "../node_modules/.cache/mongod/mongod");

/** The server's program: MONGOD, or the first `mongod` of the PATH, or the one that was fetched. */
export function findMongod(environment: Readonly<Record<string, string | undefined>> = process.env) {
  const inPath = (environment.PATH ?? "").split(delimiter).map((dir) => join(dir, "mongod"));
  const candidates = environment.MONGOD ? [environment.MONGOD] : [...inPath, FETCHED];
  return candidates.find(isExecutable);
}

function isExecutable(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** For `test.skipIf(...)`: `mongod-reporter.ts` then says so, and with CI=true the run fails before it starts. */
export const mongodMissing = findMongod() === undefined;

export interface Member {
  readonly port: number;
  signal(signal: NodeJS.Signals): void;
  /** Kills the member if need be, and starts it again on its data. */
  restart(): Promise<void>;
}

export interface ReplicaSet extends AsyncDisposable {
  readonly uri: string;
  readonly members: readonly Member[];
  /** The member that is the primary now, waiting for one if there is none. */
  primary(): Promise<Member>;
  /** Ends all members and removes their data. */
  stop(): Promise<void>;
}

export interface ReplicaSetOptions {
  readonly members?: 1 | 3;
  /** How long a silent primary is believed to be alive. */
  readonly electionTimeoutMillis?: number;
  readonly arguments?: readonly string[];
}

/** Starts a replica set, and resolves when it can be written. */
export async function startReplicaSet(options: ReplicaSetOptions = {}): Promise<ReplicaSet> {
  const { members: count = 1, electionTimeoutMillis = 2000 } = options;
  const dir = mkdtempSync(join(tmpdir(), "mongod-"));
  const ports = await freePorts(count);
  const processes: Mongod[] = [];
  const stop = async () => {
    await Promise.all(processes.map((process) => process.stop()));
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    for (const port of ports) {
      processes.push(
        await startMongod({ port, dir: join(dir, `${port}`), args: ["--replSet", "rs", ...(options.arguments ?? [])] }),
      );
    }
    const hosts = ports.map((port, _id) => ({ _id, host: `127.0.0.1:${port}` }));
    const settings = { electionTimeoutMillis, heartbeatIntervalMillis: 500, catchUpTimeoutMillis: 2000 };
    await ask(ports[0], { replSetInitiate: { _id: "rs", members: hosts, settings } });
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

/** Runs the server again whenever a line comes in, and ends with it when the input ends. $0 is the data's directory. */
const KEEPER = `while :; do
  "$@" </dev/null >/dev/null 2>&1 & echo $!
  read -r again; more=$?
  kill -9 $! 2>/dev/null; wait
  [ $more = 0 ] || break
done; rm -rf "$0"`;

/** Starts one server, and resolves when it answers. */
export async function startMongod({ port, dir, args = [] }: { port: number; dir: string; args?: readonly string[] }) {
  const program = findMongod();
  if (!program) throw new Error("There is no mongod: set MONGOD to its path.");
  mkdirSync(dir, { recursive: true });
  const command = [
    ...[program, "--port", `${port}`, "--bind_ip", "127.0.0.1", "--dbpath", dir, "--nounixsocket"],
    ...["--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "64", "--logpath", join(dir, "log"), "--logappend"],
    ...["--setParameter", "diagnosticDataCollectionEnabled=false", ...args],
  ];
  const keeper: ChildProcess = spawn("sh", ["-c", KEEPER, dir, ...command], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = once(keeper, "exit");
  const pids = createInterface({ input: keeper.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const nextPid = async () => Number((await pids.next()).value);
  let pid = await nextPid();
  const server: Mongod = {
    port,
    signal: (signal) => void process.kill(pid, signal),
    async restart() {
      keeper.stdin?.write("again\n");
      pid = await nextPid();
      await answers(port);
    },
    async stop() {
      keeper.stdin?.end();
      await ended;
    },
  };
  try {
    await answers(port);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function answers(port: number): Promise<void> {
  await until(() => ask(port, { ping: 1 }), `mongod at port ${port} did not start`);
}

async function findPrimary(members: readonly Mongod[]): Promise<Mongod> {
  return until(async () => {
    const hellos = await Promise.allSettled(members.map(({ port }) => ask(port, { hello: 1 })));
    const index = hellos.findIndex((hello) => hello.status === "fulfilled" && hello.value.isWritablePrimary);
    const primary = members[index];
    if (!primary) throw new Error("no primary");
    return primary;
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

/** Asks one server, whatever it is in its set. */
async function ask(port: number | undefined, command: object) {
  const uri = `mongodb://127.0.0.1:${port}/?directConnection=true`;
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
