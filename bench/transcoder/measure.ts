/** Measures gateways in turns of a few seconds: all run, one is under load. */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { seededRandom } from "@petstore/runtime/clock";
import { freePorts } from "../../test/harness/instances.ts";
import { type Answered, createGenerator, type Generator } from "../load/generator.ts";
import { type Request, requestsOf, type Workload } from "../load/workloads.ts";
import { cpu, machineCpu, resident } from "../measure/proc.ts";
import type { Program } from "../programs.ts";
import type { Progress } from "../progress.ts";
import { shuffled } from "../seed/random.ts";
import { calls } from "./calls.ts";
import { answering, type Gateway, gatewaysOf, prepare, startService } from "./gateways.ts";

export interface Settings {
  readonly rounds: number;
  readonly seconds: number;
  readonly seed: number;
}

export interface Sample {
  readonly round: number;
  readonly gateway: string;
  readonly call: string;
  readonly answered: Answered;
  /** Processor time of the gateway's process for one request, in microseconds. */
  readonly cpu: number;
  /** Resident memory of the gateway's process at the end, in bytes. */
  readonly resident: number;
  /** Share of the machine's time, 0 to 1, that anything at all used. */
  readonly busy: number;
}

export interface Results {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly node: string; readonly generator: string };
  readonly settings: Settings;
  readonly gateways: readonly { readonly name: string; readonly title: string; readonly restingBytes: number }[];
  readonly samples: readonly Sample[];
}

/** How many requests of a kind a gateway answers before it is measured, and in how many turns at most: compilers need them. */
const WARM_UP = { requests: 15_000, turns: 6 };
/** How long to wait for what a program does behind its start, in milliseconds. */
const SETTLE_MS = 3000;

interface Running extends Gateway {
  readonly url: string;
  readonly program: Program;
  readonly restingBytes: number;
}

export async function measureGateways(
  settings: Settings,
  only: readonly string[],
  progress: Progress,
): Promise<Results> {
  await using stack = new AsyncDisposableStack();
  await prepare(progress.say);
  const chosen = only.length > 0 ? calls.filter(({ name }) => only.includes(name)) : calls;
  const dir = mkdtempSync(join(tmpdir(), "gateways-bench-"));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const generator = createGenerator(dir);
  const running = await startAll(stack, progress);
  for (const call of chosen) await ensureSame(serving(running, call), call);
  const samples = await rounds(running, chosen, settings, generator, progress);
  return {
    at: new Date().toISOString(),
    machine: { cpu: cpus()[0]?.model ?? "", cores: cpus().length, node: process.version, generator: generator.name },
    settings,
    gateways: running.map(({ name, title, restingBytes }) => ({ name, title, restingBytes })),
    samples,
  };
}

async function startAll(stack: AsyncDisposableStack, progress: Progress): Promise<Running[]> {
  const gateways = gatewaysOf();
  const servicePort = await freePorts();
  const service = await startService(servicePort);
  stack.defer(() => service.stop());
  await sleep(500);
  const running: Running[] = [];
  for (const [i, gateway] of gateways.entries()) {
    progress.say(`starting ${gateway.title}`);
    const port = servicePort + 1 + i; // a row has ports for a petstore's five processes
    const url = `http://127.0.0.1:${port}`;
    const program = await gateway.start(port, servicePort);
    stack.defer(() => program.stop());
    await answering(`${url}/v1/shelves/1/items/1`, program);
    await sleep(SETTLE_MS);
    running.push({ ...gateway, url, program, restingBytes: resident([program.pid]) });
  }
  return running;
}

const serving = (running: readonly Running[], { name }: Workload) =>
  running.filter(({ lacks }) => !lacks?.includes(name));

/** @throws Error when gateways give different answers to one request; an unset member and null are the same. */
async function ensureSame(running: readonly Running[], call: Workload): Promise<void> {
  const request = call.request(0, seededRandom(1));
  const answers = await Promise.all(running.map(({ url }) => ask(url, request)));
  for (const [i, answer] of answers.entries())
    if (answer.status !== 200 || !isDeepStrictEqual(answer, answers[0]))
      throw new Error(
        `${call.name}: ${running[i]?.title} answers ${JSON.stringify(answer)}, ${running[0]?.title} ${JSON.stringify(answers[0])}`,
      );
}

async function ask(url: string, { method, path, body }: Request) {
  const content = body === undefined ? {} : { headers: { "content-type": "application/json" }, body };
  const response = await fetch(url + path, { method, ...content });
  const withoutNull = (_: string, value: unknown) => (value === null ? undefined : value);
  return { status: response.status, body: JSON.parse(await response.text(), withoutNull) };
}

async function rounds(
  running: readonly Running[],
  chosen: readonly Workload[],
  { rounds, seconds, seed }: Settings,
  generator: Generator,
  progress: Progress,
): Promise<Sample[]> {
  const load = async ({ url, program: { pid } }: Running, call: Workload, seconds: number, seed: number) => {
    const requests = requestsOf(call, 0, seed);
    const [connections = 1] = call.connections;
    const [before, machineBefore] = [cpu([pid]), machineCpu()];
    const answered = await generator.run({ url, connections, seconds, requests });
    const [after, machine] = [cpu([pid]), machineCpu()];
    const busy = (machine.busy - machineBefore.busy) / (machine.total - machineBefore.total);
    return { answered, cpu: (after - before) / answered.requests, resident: resident([pid]), busy };
  };
  const pairs = chosen.map((call) => serving(running, call).length).reduce((a, b) => a + b, 0);
  using bar = progress.bar("measuring", (1 + rounds) * pairs);
  for (const call of chosen)
    for (const gateway of serving(running, call)) {
      bar.step(0, `${gateway.name}, ${call.name}, warm-up`);
      for (let turn = 0, count = 0; turn < WARM_UP.turns && count < WARM_UP.requests; turn++)
        count += (await load(gateway, call, 2, seed + turn)).answered.requests;
      bar.step(1);
    }
  const random = seededRandom(seed);
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++)
    for (const call of chosen)
      for (const gateway of shuffled(serving(running, call), random)) {
        bar.step(0, `round ${round}, ${gateway.name}, ${call.name}`);
        const measured = await load(gateway, call, seconds, seed + round);
        const { refused, broken } = measured.answered;
        if (refused + broken > 0)
          throw new Error(`${gateway.title}, ${call.name}: ${refused + broken} requests failed`);
        samples.push({ round, gateway: gateway.name, call: call.name, ...measured });
        bar.step(1);
      }
  return samples;
}
