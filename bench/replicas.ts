/**
 * What more processes cost and bring: processor time of a read per kind of process, with one of each and with several, as
 * many callers for each gateway and as many in all. They take turns on one MongoDB, so that what else the machine does hits
 * them alike.
 *
 * `npm run bench -- replicas [reads of a turn]`. It needs Linux, whose /proc it reads.
 */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { run } from "../packages/runtime/fixtures/run.ts";
import { freePorts } from "../test/harness/instances.ts";
import { startReplicaSet } from "../test/harness/mongod.ts";
import { withDatabaseName } from "../test/harness/mongodb.ts";
import { spread } from "./compare/results.ts";
import { cpu } from "./measure/proc.ts";
import { wholeNumber } from "./options.ts";

const READS = wholeNumber("The reads of a turn", process.argv[3] ?? "3000");
const ROUNDS = 4;
const PETS = 50;
/** At a time, each waiting for its answer before it asks again. */
const CALLERS = 50;

const print = (line: string) => process.stdout.write(`${line}\n`);

/** Every caller has a connection of its own that stays open. */
function callers(base: string, count: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: count });
  const send = async (path: string, body?: object) => {
    const headers = { "content-type": "application/json" };
    const call = request(base + path, { agent, method: body ? "POST" : "GET", headers });
    call.end(body && JSON.stringify(body));
    const [response] = await once(call, "response");
    const answer = await text(response);
    return response.statusCode < 300 ? (JSON.parse(answer).id as number) : undefined;
  };
  const all = async (total: number, work: () => Promise<unknown>) => {
    let left = total;
    const caller = async () => {
      while (left-- > 0) await work();
    };
    await Promise.all(Array.from({ length: count }, caller));
  };
  return { send, all, close: () => agent.destroy() };
}

async function start(mongodbUri: string, replicas: string) {
  const port = await freePorts(4);
  const it = run([join(import.meta.dirname, "../start.ts")], {
    MONGODB_URI: mongodbUri,
    PORT_BASE: `${port}`,
    LOG_LEVEL: "info",
    PATH: process.env.PATH ?? "",
    ...(replicas && { REPLICAS: replicas }),
  });
  await it.printed(/is ready/);
  const pids = new Map<string, number>();
  for (const [, name = "", pid] of it.output().matchAll(/"service":"([\w-]+)","pid":(\d+),"msg":"ready at/g))
    pids.set(name, Number(pid));
  const base = `http://127.0.0.1:${port}`;
  const { send, close } = callers(base, 1);
  /** Asks again when the machine is too busy. */
  const make = async (path: string, body: object): Promise<number> => (await send(path, body)) ?? make(path, body);
  const categoryId = await make("/categories", { name: "dogs" });
  const ids: number[] = [];
  while (ids.length < PETS) ids.push(await make("/pets", { name: "Rex", categoryId }));
  close();
  return { base, ids, pids, [Symbol.asyncDispose]: () => it[Symbol.asyncDispose]() };
}

type Petstore = Awaited<ReturnType<typeof start>>;

/** Processor time of a read in microseconds, and the reads of a second. */
async function turn({ base, ids, pids }: Petstore, count: number) {
  const { send, all, close } = callers(base, count);
  let failed = 0;
  const read = async () => {
    if ((await send(`/pets/${ids[Math.floor(Math.random() * PETS)]}`)) === undefined) failed++;
  };
  await all(count * 10, read);
  const before = new Map([...pids].map(([name, pid]) => [name, cpu([pid])]));
  const started = performance.now();
  await all(READS, read);
  const perSecond = READS / ((performance.now() - started) / 1000);
  close();
  const spent = [...pids].map(([name, pid]): [string, number] => [
    name,
    (cpu([pid]) - (before.get(name) ?? 0)) / READS,
  ]);
  const of = (kind: string) => spent.filter(([name]) => name.startsWith(kind)).map(([, micros]) => micros);
  return { perSecond, failed, gateway: of("gateway"), pet: of("pet") };
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
const median = (values: readonly number[]) => spread(values).median;

await using mongod = await startReplicaSet();
await using one = await start(withDatabaseName(mongod.uri, "one"), "");
await using two = await start(withDatabaseName(mongod.uri, "two"), "gateway:2,pet:2");
const subjects: [string, Petstore, number][] = [
  [`one of each, ${CALLERS} callers`, one, CALLERS],
  [`gateway:2,pet:2, ${2 * CALLERS} callers`, two, 2 * CALLERS],
  [`gateway:2,pet:2, ${4 * CALLERS} callers`, two, 4 * CALLERS],
];
const found = new Map(subjects.map(([name]) => [name, [] as Awaited<ReturnType<typeof turn>>[]]));
for (let round = 0; round < ROUNDS; round++)
  for (const [name, petstore, count] of subjects) {
    const one = await turn(petstore, count);
    found.get(name)?.push(one);
    process.stderr.write(`round ${round + 1}, ${name}: ${JSON.stringify(one)}\n`);
  }

print("| | gateway, µs a read | pet, µs a read | both | busiest gateway's share | reads/s here |");
print("|---|---|---|---|---|---|");
for (const [name, turns] of found) {
  const [gateway, pet] = [median(turns.map((one) => sum(one.gateway))), median(turns.map((one) => sum(one.pet)))];
  const share = median(turns.map((one) => Math.max(...one.gateway) / sum(one.gateway)));
  const rate = median(turns.map((one) => one.perSecond));
  print(
    `| ${name} | ${gateway.toFixed(0)} | ${pet.toFixed(0)} | ${(gateway + pet).toFixed(0)} | ${(100 * share).toFixed(0)} % | ${rate.toFixed(0)} |`,
  );
}
