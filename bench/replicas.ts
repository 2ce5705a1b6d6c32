/**
 * Measures the costs and benefits of replicas: processor time of a read by kind of process, with one of each, and with two
 * gateways and two of pet, for the same number of clients per gateway and for the same number in all. All run side by side and
 * take turns, so that other load on the machine affects them equally.
 *
 * `npm run bench -- replicas [seconds of a turn]`. It needs Linux, whose /proc it reads.
 */
import { openSurroundings } from "./compare/surroundings.ts";
import { type Workload, workloads } from "./load/workloads.ts";
import { wholeNumber } from "./options.ts";
import { createProgress } from "./progress.ts";
import { print, running, shown, sum, type Turn, turn } from "./turns.ts";

const SECONDS = wholeNumber("The seconds of a turn", process.argv[3] ?? "4");
const ROUNDS = 6;
/** Turns until the code is compiled, with the highest number of clients. */
const WARM_UP_TURNS = 4;
/** Number of concurrent clients; each waits for its answer before the next request. */
const CLIENTS = 50;

const get = workloads.find(({ name }) => name === "get") as Workload;
const progress = createProgress();
await using stack = new AsyncDisposableStack();
const surroundings = await openSurroundings(stack);

const both = ({ kind }: Turn) => sum(kind("gateway")) + sum(kind("pet"));

progress.say("starting");
const one = await running(surroundings, stack, "one", 5);
const two = await running(surroundings, stack, "two", 7, "gateway:2,pet:2");
const subjects: readonly [string, typeof one, number][] = [
  [`one of each, ${CLIENTS} clients`, one, CLIENTS],
  [`one of each, ${4 * CLIENTS} clients`, one, 4 * CLIENTS],
  [`gateway:2,pet:2, ${CLIENTS} clients`, two, CLIENTS],
  [`gateway:2,pet:2, ${2 * CLIENTS} clients`, two, 2 * CLIENTS],
  [`gateway:2,pet:2, ${4 * CLIENTS} clients`, two, 4 * CLIENTS],
];

const measured = (petstore: typeof one, connections: number, seed: number) =>
  turn(surroundings, petstore, get, { connections, seconds: SECONDS, seed });

const found = new Map(subjects.map(([name]) => [name, [] as Turn[]]));
{
  using bar = progress.bar("measuring", WARM_UP_TURNS * 2 + ROUNDS * subjects.length);
  for (let round = 1; round <= WARM_UP_TURNS; round++)
    for (const petstore of [one, two]) {
      bar.step(0, "warming up");
      await measured(petstore, 4 * CLIENTS, round);
      bar.step(1);
    }
  for (let round = 1; round <= ROUNDS; round++)
    for (const [name, petstore, connections] of subjects) {
      bar.step(0, `round ${round}, ${name}`);
      found.get(name)?.push(await measured(petstore, connections, WARM_UP_TURNS + round));
      bar.step(1);
    }
}

const first = found.get(subjects[0]?.[0] ?? "") ?? [];
process.stdout.write(
  "Processor time of a read in microseconds; median of the rounds, lowest to highest in brackets.\n\n",
);
const columns = [
  "gateways",
  "pet",
  "both",
  "beside the first",
  "MongoDB",
  "busiest gateway",
  "reads/s",
  "failed",
  "machine busy",
];
print(["", ...columns]);
print(["---", ...columns.map(() => "--:")]);
for (const [name, turns] of found) {
  const cells = [
    shown(turns.map(({ kind }) => sum(kind("gateway")))),
    shown(turns.map(({ kind }) => sum(kind("pet")))),
    shown(turns.map(both)),
    shown(
      turns.map((one, round) => both(one) / both(first[round] as Turn)),
      2,
    ),
    shown(turns.map(({ mongod }) => mongod)),
    `${shown(turns.map(({ kind }) => (100 * Math.max(...kind("gateway"))) / sum(kind("gateway"))))} %`,
    shown(turns.map(({ perSecond }) => perSecond)),
    sum(turns.map(({ failed }) => failed)),
    `${shown(turns.map(({ busy }) => 100 * busy))} %`,
  ];
  print([name, ...cells]);
}
