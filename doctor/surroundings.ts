/** What is around a petstore: its settings, ports, disk and clock. */
import { readdirSync, statfsSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { reachable } from "@petstore/rpc/http/address";
import { portOf, processNames, replicasOf } from "../processes/names.ts";
import { configurationProblems, type DoctorConfig } from "./config.ts";
import { around, type Finding } from "./findings.ts";

/** A port of this machine answers at once. In milliseconds. */
const CONNECT_MS = 1_000;
const FEW_BYTES = 100 * 1024 * 1024;
/** A file system may take its time from another machine. */
const AHEAD_MS = 60_000;

/** `isLive` is undefined if nobody knows, as with MongoDB, which processes of other machines may use as well. */
export async function surroundings(
  config: DoctorConfig,
  isLive: boolean | undefined,
  clock: () => number,
): Promise<Finding[]> {
  const { environment, mongodbUri, dataDir } = config;
  return [
    ...configurationProblems(environment).map((problem) => around("env-configuration", problem)),
    ...wrongPorts(await portsOf(config), isLive),
    ...(mongodbUri === undefined ? wrongDirectory(dataDir, clock()) : []),
  ];
}

export interface Port {
  readonly port: number;
  /** The process that should have it. */
  readonly name: string;
  readonly isTaken: boolean;
}

/** The ports of the API that a petstore with these settings has, none where its processes are spread over machines. */
export function portsOf({ host, portBase, replicas, isSpread }: DoctorConfig): Promise<Port[]> {
  const all = new Map<number, string>();
  for (const name of isSpread ? [] : processNames)
    for (let replica = 1; replica <= replicasOf(replicas, name); replica++)
      all.set(portOf(name, portBase, replica), name);
  return Promise.all(
    [...all].map(async ([port, name]) => ({ port, name, isTaken: await isTaken(reachable(host), port) })),
  );
}

export function wrongPorts(ports: readonly Port[], isLive: boolean | undefined): Finding[] {
  const running = isLive ?? ports.some(({ isTaken }) => isTaken);
  return ports
    .filter(({ isTaken }) => isTaken !== running)
    .map(({ port, name }) =>
      running
        ? around("env-ports", `Nothing listens at port ${port}, where ${name} should: see its log.`, [`${port}`])
        : around("env-ports", `Port ${port} is taken, which ${name} needs: end what has it, or set PORT_BASE.`, [
            `${port}`,
          ]),
    )
    .filter(() => isLive !== undefined || running);
}

function isTaken(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, timeout: CONNECT_MS });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket
    .once("connect", () => resolve(true))
    .once("error", () => resolve(false))
    // A process that had to wait for its turn hears that the time is over before it hears of an answer.
    .once("timeout", () => setImmediate(() => resolve(false)));
  return promise.finally(() => socket.destroy());
}

function wrongDirectory(dataDir: string, now: number): Finding[] {
  const { bavail, bsize } = statfsSync(dataDir);
  // A file may go meanwhile.
  const changed = (name: string) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const late = readdirSync(dataDir).find((name) => changed(name) > now + AHEAD_MS);
  const free = Math.floor((bavail * bsize) / 1024 / 1024);
  return [
    ...(bavail * bsize < FEW_BYTES
      ? [around("env-disk", `The disk of ${dataDir} has ${free} MiB left: make room.`)]
      : []),
    ...(late
      ? [around("env-clock", `${join(dataDir, late)} was changed later than now: set this machine's clock.`)]
      : []),
  ];
}
