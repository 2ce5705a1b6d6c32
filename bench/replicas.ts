/**
 * Measures the costs and benefits of replicas: processor time of a read by kind of process, with one of each, and with two
 * gateways and two of pet, for the same number of clients per gateway and for the same number in all. All run side by side and
 * take turns, so that other load on the machine affects them equally.
 *
 * `npm run bench -- replicas [seconds of a turn]`. It needs Linux, whose /proc it reads.
 */
import { spread } from "./compare/results.ts";
import { fill, type Started, start } from "./compare/running.ts";
import { openSurroundings } from "./compare/surroundings.ts";
import { requestsOf, type Workload, workloads } from "./load/workloads.ts";
import { cpu, machineCpu } from "./measure/proc.ts";
import { wholeNumber } from "./options.ts";
import { nameOf, onMongodb, petstore } from "./peers/petstore/peer.ts";
import { createProgress } from "./progress.ts";

const SECONDS = wholeNumber("The seconds of a turn", process.argv[3] ?? "4");
const ROUNDS = 6;
/** Turns until the code is compiled, with the highest number of clients. */
const WARM_UP_TURNS = 4;
const PETS = 10_000;
/** Number of concurrent clients; each waits for its answer before the next request. */
const CLIENTS = 50;

const get = workloads.find(({ name }) => name === "get") as Workload;
const progress = createProgress();
await using stack = new AsyncDisposableStack();
const { generator, place, mongod } = await openSurroundings(stack);

async function running(name: string, processes: number, replicas: string): Promise<Started> {
  const environment = { LOG_LEVEL: "info", ...(replicas && { REPLICAS: replicas }) };
  const about = { name, title: name, data: "petstore" } as const;
  const peer = petstore(about, (at) => ({ ...onMongodb(at), ...environment }), processes);
  const at = await place(name);
  progress.say(`starting ${name}`);
  await fill(peer.data, at, PETS);
  const started = await start(peer, at);
  stack.defer(() => started.stop());
  return started;
}

/** Reads per second, and the processor time of one in microseconds, by process. */
async function turn({ url, pids }: Started, connections: number, seed: number) {
  const requests = requestsOf(get, PETS, seed);
  const all = [...pids, mongod];
  const spent = () => new Map(all.map((pid) => [pid, cpu([pid])]));
  const [before, machineBefore] = [spent(), machineCpu()];
  const answered = await generator.run({ url, connections, seconds: SECONDS, requests });
  const [after, machine] = [spent(), machineCpu()];
  const of = (pid: number) => ((after.get(pid) ?? 0) - (before.get(pid) ?? 0)) / answered.requests;
  const kind = (name: string) => pids.filter((pid) => nameOf(pid) === name).map(of);
  return {
    perSecond: answered.requests / answered.seconds,
    failed: answered.refused + answered.broken,
    gateway: kind("gateway"),
    pet: kind("pet"),
    mongod: of(mongod),
    busy: (machine.busy - machineBefore.busy) / (machine.total - machineBefore.total),
  };
}
type Turn = Awaited<ReturnType<typeof turn>>;

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
const both = ({ gateway, pet }: Turn) => sum(gateway) + sum(pet);

const one = await running("one", 5, "");
const two = await running("two", 7, "gateway:2,pet:2");
const subjects: readonly [string, Started, number][] = [
  [`one of each, ${CLIENTS} clients`, one, CLIENTS],
  [`one of each, ${4 * CLIENTS} clients`, one, 4 * CLIENTS],
  [`gateway:2,pet:2, ${CLIENTS} clients`, two, CLIENTS],
  [`gateway:2,pet:2, ${2 * CLIENTS} clients`, two, 2 * CLIENTS],
  [`gateway:2,pet:2, ${4 * CLIENTS} clients`, two, 4 * CLIENTS],
];

const found = new Map(subjects.map(([name]) => [name, [] as Turn[]]));
{
  using bar = progress.bar("measuring", WARM_UP_TURNS * 2 + ROUNDS * subjects.length);
  for (let round = 1; round <= WARM_UP_TURNS; round++)
    for (const petstore of [one, two]) {
      bar.step(0, "warming up");
      await turn(petstore, 4 * CLIENTS, round);
      bar.step(1);
    }
  for (let round = 1; round <= ROUNDS; round++)
    for (const [name, petstore, connections] of subjects) {
      bar.step(0, `round ${round}, ${name}`);
      found.get(name)?.push(await turn(petstore, connections, WARM_UP_TURNS + round));
      bar.step(1);
    }
}

const first = found.get(subjects[0]?.[0] ?? "") ?? [];
/** The median and the range of the rounds. */
function shown(values: readonly number[], digits = 0): string {
  const { median, min, max } = spread(values);
  return `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`;
}
const print = (line: string) => process.stdout.write(`${line}\n`);
print("Processor time of a read in microseconds; median of the rounds, lowest to highest in brackets.\n");
print("| | gateways | pet | both | beside the first | MongoDB | busiest gateway | reads/s | failed | machine busy |");
print("|---|---|---|---|---|---|---|---|---|---|");
for (const [name, turns] of found) {
  const cells = [
    shown(turns.map(({ gateway }) => sum(gateway))),
    shown(turns.map(({ pet }) => sum(pet))),
    shown(turns.map(both)),
    shown(
      turns.map((one, round) => both(one) / both(first[round] as Turn)),
      2,
    ),
    shown(turns.map(({ mongod }) => mongod)),
    `${shown(turns.map(({ gateway }) => (100 * Math.max(...gateway)) / sum(gateway)))} %`,
    shown(turns.map(({ perSecond }) => perSecond)),
    sum(turns.map(({ failed }) => failed)),
    `${shown(turns.map(({ busy }) => 100 * busy))} %`,
  ];
  print(`| ${name} | ${cells.join(" | ")} |`);
}
