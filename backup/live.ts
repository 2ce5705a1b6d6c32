/**
 * Copies the files of a petstore that runs. Its processes leave the files as they are and write to their logs alone, until they
 * are copied. Then all of them hold their commits for a moment, at most 100 ms, and say how long their logs are: that is the
 * instant of the copy. The logs up to there are copied behind it.
 */
import { realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Environment, readEnvironment } from "@petstore/runtime/environment";
import { CannotLook } from "../doctor/findings.ts";
import { processSettings } from "../processes/config.ts";
import { adminUrlOf, processNames, serviceNames } from "../processes/names.ts";
import { openProof, type Proof } from "../services/proof.ts";
import { copyFile, fileOf, Refused } from "./places.ts";
import { type Progress, showProgress } from "./progress.ts";

/** How often the processes are told that the copy goes on, if it does, in milliseconds. They wait three times as long. */
const GO_ON_MS = 10_000;
/** How often it is tried to have all processes hold their commits at once, and the pause between, in milliseconds. */
const TRIES = 100;
const PAUSE_MS = 100;

const { ADMIN_HOST, ADMIN_PORT, PORT_BASE, REPLICAS } = processSettings;
const adminSettings = { ADMIN_HOST, ADMIN_PORT, PORT_BASE, REPLICAS };

/** A process that has some of the files open. */
interface Process {
  readonly files: readonly string[];
  ask(
    step: "go on" | "hold" | "release" | "end",
  ): Promise<{ readonly logs?: readonly number[]; readonly wasHeld?: boolean }>;
}

/** Copies the files of the services into `to`, with their logs. Resolves to the instant. */
export async function copyLive(directory: string, to: string, environment: Environment): Promise<string> {
  using proof = openProof(directory);
  const processes = await openProcesses(directory, proof, environment);
  let [bytes, told] = [0, 0];
  // A copy that hangs is not gone on with: logs would grow until the disk is full.
  using _ = every(GO_ON_MS, async () => {
    if (bytes === told) return;
    told = bytes;
    await askAll(processes, "go on");
  });
  const counting = (progress: Progress) => (count: number) => {
    bytes += count;
    progress.add(count);
  };
  try {
    const sizes = processes.flatMap(({ files }) => files.map((file) => statSync(file).size));
    {
      using progress = showProgress("Copying files", sizes, "bytes");
      for (const [service, file] of filesOf(processes, directory))
        await copyFile(file, join(to, fileOf(service)), counting(progress));
    }
    const { instant, logs } = await holdAll(processes);
    using progress = showProgress("Copying changes", [...logs.values()], "bytes");
    for (const [service, file] of filesOf(processes, directory))
      await copyFile(`${file}-wal`, join(to, `${fileOf(service)}-wal`), counting(progress), logs.get(file) ?? 0);
    await askAll(processes, "end");
    return instant;
  } finally {
    await askAll(processes, "end").catch(() => {}); // over already, or it ends by itself
  }
}

/** The files by service. Throws `Refused` unless the processes have all of them. */
function filesOf(processes: readonly Process[], directory: string) {
  const open = processes.flatMap(({ files }) => files);
  return serviceNames.map((service) => {
    const path = realpathSync(join(directory, fileOf(service)));
    const file = open.find((one) => realpathSync(one) === path);
    if (file === undefined)
      throw new Refused(
        `${path} is in use, and not by the petstore that the settings name: it has ${open.join(", ")}.`,
      );
    return [service, file] as const;
  });
}

async function holdAll(processes: readonly Process[]) {
  for (let tries = 0; tries < TRIES; tries++) {
    const held = await askAll(processes, "hold");
    const instant = new Date().toISOString();
    const released = await askAll(processes, "release");
    if (released.every(({ wasHeld }) => wasHeld)) {
      const logs = processes.flatMap(({ files }, i) =>
        files.map((file, at) => [file, held[i]?.logs?.[at] ?? 0] as const),
      );
      return { instant, logs: new Map(logs) };
    }
    await sleep(PAUSE_MS);
  }
  throw new Refused("The machine is too busy for all processes to stand still for the same moment: try again later.");
}

const askAll = (processes: readonly Process[], step: Parameters<Process["ask"]>[0]) =>
  Promise.all(processes.map(({ ask }) => ask(step)));

/** Begins a copy at each process that has one of the files open: the services, or the one process that is all of them. */
async function openProcesses(directory: string, proof: Proof, environment: Environment): Promise<Process[]> {
  const ports = readEnvironment(environment, adminSettings);
  const processes: Process[] = [];
  try {
    for (const url of new Set(processNames.map((name) => adminUrlOf(name, ports)))) {
      const process = await open(url, proof);
      if (process) processes.push(process);
    }
    if (processes.length === 0)
      throw new CannotLook(
        `${directory} is in use, and no process of the petstore answers at an admin port, which a backup needs: run this on its machine ` +
          "with its settings (PORT_BASE, ADMIN_PORT), or stop the petstore first.",
      );
    filesOf(processes, directory);
    return processes;
  } catch (error) {
    await askAll(processes, "end").catch(() => {}); // it ends by itself
    throw error;
  }
}

/** Begins a copy at a process; undefined if there is none, or if it has no files. */
async function open(url: string, { query }: Proof): Promise<Process | undefined> {
  async function put(body: object) {
    const sent = { method: "PUT", body: JSON.stringify(body), signal: AbortSignal.timeout(GO_ON_MS) };
    const answer = await fetch(`${url}/store/copy?${query}`, sent);
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }
  const begun = await put({ step: "begin" }).catch((error) => {
    if (error.cause?.code === "ECONNREFUSED") return undefined;
    throw new CannotLook(`${url} does not answer: ${error.message}`);
  });
  if (!begun || begun.status === 404) return undefined;
  if (begun.status !== 200) throw new Refused(`${url} says: ${begun.body.message}`);
  const { token, files } = begun.body as { token: string; files: string[] };
  return {
    files,
    async ask(step) {
      const { status, body } = await put({ step, token }).catch((error) => {
        throw new Refused(
          `The process at ${url} has ended or hangs, so the copy is void: begin anew. (${error.message})`,
        );
      });
      if (status !== 200) throw new Refused(`${url} says: ${body.message}`);
      return body;
    },
  };
}

function every(ms: number, work: () => Promise<unknown>): Disposable {
  const timer = setInterval(() => work().catch(() => {}), ms); // what is wrong shows at the next step
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
