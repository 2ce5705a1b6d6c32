/**
 * Measures the store's engines, and compares them with the driver called once for each operation. All subjects on one server
 * take turns in one run, so that other load on the machine affects them equally.
 *
 * `npm run bench -- engines [seconds of a turn]`
 */

import { findMongod, startReplicaSet } from "../../test/harness/mongod.ts";
import { spread } from "../compare/results.ts";
import { wholeNumber } from "../options.ts";
import { showStatus } from "../progress.ts";
import { count } from "../report/conditions.ts";
import { driver, embedded, mongodb, SHELVES, type Subject } from "./subjects.ts";

const TURN_MS = wholeNumber("The seconds of a turn", process.argv[3] ?? "1") * 1000;
const TURNS = 3;
/** Number of concurrent callers; each waits for its answer before the next call. */
const CALLERS = 128;
const DOCUMENTS = 20_000;

const anyOf = (count: number) => Math.floor(Math.random() * count);
const item = (_id: number) => ({ _id, name: `Item ${_id}`, count: 0, listed: true, shelf: _id % SHELVES }) as const;

const WORK: Record<string, (subject: Subject, next: () => number) => Promise<unknown>> = {
  "reads by id": (subject) => subject.read(anyOf(DOCUMENTS)),
  "changes of any document": (subject) => subject.increment(anyOf(DOCUMENTS)),
  "changes of one document": (subject) => subject.increment(1),
  "documents inserted": (subject, next) => subject.insert(item(DOCUMENTS + next())),
  "pages of 20": (subject) => subject.list(anyOf(SHELVES)),
  "numbers of a sequence": (subject) => subject.nextId(),
};

interface Sample {
  readonly perSecond: number;
  /** Processor time of this process, without the server's. */
  readonly cpuMicros: number;
}

const print = (text: string) => process.stdout.write(`${text}\n`);

/** Runs `work` in all callers until `isOver`. Returns how often it ran. */
async function callers(isOver: () => boolean, work: () => Promise<unknown>): Promise<number> {
  let done = 0;
  const caller = async () => {
    while (!isOver()) {
      await work();
      done++;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return done;
}

async function turn(work: () => Promise<unknown>): Promise<Sample> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const done = await callers(() => performance.now() - start >= TURN_MS, work);
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond: (done / (performance.now() - start)) * 1000, cpuMicros: (user + system) / done };
}

async function fill(subject: Subject): Promise<void> {
  let next = 0;
  showStatus(`filling ${subject.name}`);
  await callers(
    () => next >= DOCUMENTS,
    () => subject.insert(item(next++)),
  );
}

const median = (values: readonly number[]) => spread(values).median;

/** Prints one table. The first subject is compared with the last. */
async function compare(title: string, subjects: readonly Subject[]): Promise<void> {
  for (const subject of subjects) await fill(subject);
  showStatus("");
  const against = subjects.length > 1;
  print(`\n### ${title}\n`);
  print(`| | ${subjects.map(({ name }) => `${name}, per s | CPU µs`).join(" | ")} |${against ? " rate |" : ""}`);
  print(`|---|${"--:|--:|".repeat(subjects.length)}${against ? "--:|" : ""}`);
  const inserted = new Map<Subject, number>();
  for (const [name, work] of Object.entries(WORK)) {
    const samples = new Map<Subject, Sample[]>(subjects.map((subject) => [subject, []]));
    for (let i = 0; i < TURNS; i++) {
      for (const [subject, of] of samples) {
        showStatus(`${title}: ${name}, ${subject.name}, turn ${i + 1} of ${TURNS}`);
        const next = () => {
          const number = inserted.get(subject) ?? 0;
          inserted.set(subject, number + 1);
          return number;
        };
        of.push(await turn(() => work(subject, next)));
      }
    }
    const rates = [...samples.values()].map((of) => median(of.map(({ perSecond }) => perSecond)));
    const cells = [...samples.values()].map(
      (of, i) => `${count(rates[i] ?? 0)} | ${count(median(of.map(({ cpuMicros }) => cpuMicros)))}`,
    );
    const ratio = against ? ` ${((rates[0] ?? 0) / (rates.at(-1) ?? 1)).toFixed(1)}x |` : "";
    showStatus("");
    print(`| ${name} | ${cells.join(" | ")} |${ratio}`);
  }
  for (const subject of subjects) await subject.close();
}

await compare("embedded", [await embedded()]);
if (!findMongod()) print("\nThere is no mongod: set MONGOD to its path, or run .ci/mongod.");
else {
  for (const members of [1, 3] as const) {
    await using set = await startReplicaSet({ members });
    await compare(`MongoDB, ${members === 1 ? "one member" : "three members"}`, [
      await mongodb(set.uri),
      await driver(set.uri),
    ]);
  }
}
