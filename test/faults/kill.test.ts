/**
 * Random histories of several clients against the real processes, which are killed at random moments. On MongoDB every
 * write is judged too, in the order in which it was made. Watchers, through the gateway and at the services, are told all of it.
 * HISTORY_RUNS says how long, some 14 for each kill, HISTORY_SEED which.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { seededRandom } from "@petstore/runtime/clock";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reasonOf } from "#errors";
import { processNames } from "../../processes/names.ts";
import { createBlackBoxChecker } from "../checker/black-box-checker.ts";
import { toldTo, violationsIn } from "../checker/events.ts";
import { wrongInTheEnd } from "../checker/invariants.ts";
import { knownHistory } from "../checker/known-history.ts";
import { createOnlineChecker } from "../checker/online-checker.ts";
import { emptyState, type State } from "../checker/state.ts";
import { eventually } from "../harness/eventually.ts";
import { type Writes, watchWrites } from "../harness/mongodb-writes.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { BETWEEN_LOOKS_MS, readStores } from "../harness/stores.ts";
import { createClient, nobodyKnown } from "../workload/client.ts";
import { isUnavailable } from "../workload/doors.ts";
import { performOverHttp } from "../workload/http.ts";
import { isRead, type Operation, prelude, programs } from "../workload/operations.ts";
import type { Outcome, Shown } from "../workload/perform.ts";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { kinds, startWatcher, type Watcher } from "../workload/watchers.ts";

/** A round takes as long as many histories of the simulation. */
const ROUNDS = Math.max(2, Math.ceil(historyRuns / 20));
/** Marks of a round, more than there are in a program. */
const MARKS = 10_000;
/** A kill waits up to so many milliseconds, and hits some step of what is under way. */
const STEPS_MS = 30;

let petstore: Petstore;
let writes: Writes | undefined;
let watchers: readonly Watcher[];
beforeAll(async () => {
  petstore = await startPetstore();
  const { mongodbUri } = petstore.store;
  writes = mongodbUri === undefined ? undefined : await watchWrites(mongodbUri);
  // Whoever answers says why; a connection that is lost does not.
  const options = {
    passes: (error: unknown) => isUnavailable(error) || !reasonOf(ConnectError.from(error)),
    pause: () => sleep(50),
  };
  watchers = kinds.flatMap((kind) =>
    [petstore.connect, petstore.client].map((client) => startWatcher({ client }, kind, options)),
  );
  await Promise.all(watchers.map(({ begun }) => begun));
});
afterAll(async () => {
  await writes?.[Symbol.asyncDispose]();
  await petstore?.stop();
});

const blackBoxChecker = createBlackBoxChecker();
const roll = seededRandom(historySeed);
/** What GETs showed. */
const seen: Shown[] = [];
const counts: Record<string, number> = {};
const count = (what: string) => {
  counts[what] = (counts[what] ?? 0) + 1;
};

/** The process that was killed last is there again. */
let back: Promise<void> = Promise.resolve();

async function killOne(): Promise<void> {
  const name = processNames[Math.floor(roll() * processNames.length)] ?? "pet";
  await sleep(roll() * STEPS_MS);
  await petstore.kill(name);
  count("killed");
  await petstore.start(name);
}

/** Several clients at once; before some of what they send, a process is chosen to be killed. */
async function round(clients: Operation[][], number: number): Promise<void> {
  const known = nobodyKnown();
  const length = clients.flat().length;
  const kills = new Set(Array.from({ length: Math.floor(roll() * 4) }, () => Math.floor(roll() * length)));
  let sent = 0;
  const client = createClient(async (operation) => {
    if (kills.delete(sent++)) back = back.then(killOne);
    const send = () => performOverHttp(petstore.http, operation).catch((): Outcome => ({ is: "unknown" }));
    const outcome = await blackBoxChecker.follow(operation, send);
    if (isRead(operation) && outcome.is === "done" && outcome.shown) seen.push(outcome.shown);
    count(outcome.is === "refused" ? outcome.reason : outcome.is);
    // Who is in doubt asks again, or goes on, when somebody can answer.
    if (outcome.is === "unknown") await back;
    return outcome;
  }, known);
  const own = ({ mark, key, ...rest }: Operation): Operation =>
    ({ ...rest, mark: mark + number * MARKS, ...(key !== undefined && { key: `${key}-${number}` }) }) as Operation;
  const live = async (program: Operation[]) => {
    for (const operation of program) await client.do(own(operation));
  };
  await live(prelude);
  await Promise.all(clients.map(live));
  await back;
}

/** What each of the writes made wrong at the moment when it was made; and all that they showed. */
function judged({ all }: Writes) {
  const checker = createOnlineChecker();
  for (const { collection, after } of all) checker.written(collection, after);
  return {
    violations: checker.violations(),
    shown: checker.history.flatMap(({ shown }) => shown ?? []),
    history: checker.history,
    state: checker.state,
  };
}

test(`nothing is lost, doubled or stuck (HISTORY_SEED=${historySeed} HISTORY_RUNS=${historyRuns})`, async () => {
  for (const [number, clients] of fc.sample(programs(4, 8), { seed: historySeed, numRuns: ROUNDS }).entries())
    await round(clients, number);

  const watches = watchers.map(({ watch }) => watch);
  let state: State = emptyState();
  const wrong = async () => {
    state = await readStores(petstore);
    return wrongInTheEnd(state);
  };
  await eventually(wrong, [], BETWEEN_LOOKS_MS);
  const known = writes;
  // The last of them may still be on their way.
  if (known) await eventually(async () => sorted(judged(known).state), sorted(state));
  const history = () => (known ? judged(known).history : knownHistory([...seen, ...toldTo(watches)], state));
  await eventually(async () => violationsIn(watches, history()), []);
  const { violations, shown } = known ? judged(known) : { violations: [], shown: toldTo(watches) };
  expect([...violations, ...blackBoxChecker.verdict(state, shown)]).toEqual([]);
  for (const { stop, streams } of watchers) {
    await stop();
    if (streams() > 1) count("resumed");
  }
  process.stdout.write(`${ROUNDS} rounds: ${JSON.stringify(counts)}\n`);
  // A run without them proves nothing about them.
  for (const what of ["killed", "unknown", "done", "resumed"])
    expect([what, counts[what]]).toEqual([what, expect.any(Number)]);
}, 1_800_000);

/** The revision of every record, in a form that can be compared. */
const sorted = (state: State) =>
  Object.entries(state).map(([name, docs]: [string, State[keyof State]]) => [
    name,
    [...docs.values()].map(({ _id, rev }) => [_id, rev]).sort(([a = 0], [b = 0]) => a - b),
  ]);
