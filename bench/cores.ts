/**
 * Measures which process a request costs how much, and what it adds to MongoDB's oplog: how many of each a load takes.
 *
 * `npm run bench -- cores [seconds of a turn]`. It needs Linux, whose /proc it reads.
 */
import { MongoClient } from "mongodb";
import { processNames } from "../processes/names.ts";
import { openSurroundings } from "./compare/surroundings.ts";
import { placing, type Workload, workloads } from "./load/workloads.ts";
import { wholeNumber } from "./options.ts";
import { createProgress } from "./progress.ts";
import { print, running, shown, sum, type Turn, turn } from "./turns.ts";

const SECONDS = wholeNumber("The seconds of a turn", process.argv[3] ?? "3");
const ROUNDS = 5;
/** Few enough that none is refused where others use the machine as well. */
const CLIENTS = 50;

const named = (name: string) => workloads.find((workload) => workload.name === name) as Workload;
const rows = [named("get"), named("list"), named("list-filters"), placing, named("mixed")].map((workload) => ({
  workload,
  turns: [] as Cost[],
}));

interface Cost extends Turn {
  /** Bytes for each request. */
  readonly oplog: number;
}

const progress = createProgress();
await using stack = new AsyncDisposableStack();
const surroundings = await openSurroundings(stack);
const { mongoUrl } = await surroundings.place("cores");
const client = stack.use(await new MongoClient(mongoUrl).connect());
const oplogBytes = async () => (await client.db("local").command({ collStats: "oplog.rs" })).size as number;

progress.say("starting");
const petstore = await running(surroundings, stack, "cores", processNames.length);

{
  using bar = progress.bar("measuring", (1 + ROUNDS) * rows.length);
  // In the first round code is compiled.
  for (let round = 0; round <= ROUNDS; round++)
    for (const { workload, turns } of rows) {
      bar.step(0, `round ${round}, ${workload.name}`);
      await surroundings.checkpoint();
      const before = await oplogBytes();
      const one = await turn(surroundings, petstore, workload, {
        connections: CLIENTS,
        seconds: SECONDS,
        seed: 1 + round,
      });
      const oplog = ((await oplogBytes()) - before) / one.requests;
      if (round > 0) turns.push({ ...one, oplog });
      bar.step(1);
    }
}

process.stdout.write(
  `Processor time of a request in µs, ${CLIENTS} clients; median of the rounds, lowest to highest in brackets.\n\n`,
);
const columns = [...processNames, "all five", "MongoDB", "oplog, bytes", "requests/s", "failed", "machine busy, %"];
print(["", ...columns]);
print(["---", ...columns.map(() => "--:")]);
for (const { workload, turns } of rows)
  print([
    workload.title,
    ...processNames.map((name) => shown(turns.map(({ kind }) => sum(kind(name))))),
    shown(turns.map(({ kind }) => sum(processNames.flatMap(kind)))),
    shown(turns.map(({ mongod }) => mongod)),
    shown(turns.map(({ oplog }) => oplog)),
    shown(turns.map(({ perSecond }) => perSecond)),
    sum(turns.map(({ failed }) => failed)),
    shown(turns.map(({ busy }) => 100 * busy)),
  ]);
