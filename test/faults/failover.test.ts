/**
 * The whole petstore on three members of MongoDB, under load, while the primary is killed, paused, asked to step down and
 * cut off: nothing answered is lost or done twice, callers hear of nothing but 503, service resumes, and watchers, through
 * the gateway and at the services, are told all of it once.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Document } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { toldTo, violationsIn } from "../checker/events.ts";
import { createHistory, type History } from "../checker/failover-history.ts";
import { verdict } from "../checker/failover-verdict.ts";
import { knownHistory } from "../checker/known-history.ts";
import { eventually } from "../harness/eventually.ts";
import { ask, type Member, mongodMissing, type ReplicaSet, startReplicaSet } from "../harness/mongod.ts";
import { type Machine, type Network, networkMissing, startNetwork } from "../harness/network.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { readState } from "../harness/stores.ts";
import { type Load, startLoad } from "../workload/load.ts";
import { kinds, startWatcher, type Watcher } from "../workload/watchers.ts";
import { type Elections, watchElections } from "./elections.ts";

/** Writes of each kind that must be answered before a blow, after it, and when all members are back. */
const ENOUGH = 10;
const KINDS = ["category", "pet", "order", "inventory"] as const;
/**
 * What may be answered: what was asked for, refusals that the load brings about, and that there is no answer now. 504
 * comes when a machine is too busy to say so in time, and never before a request's own time is over.
 */
const STATUSES = [200, 201, 204, 404, 409, 412, 503, 504];

/** Milliseconds from the moment at which a new primary can be written. */
interface Resumption {
  readonly blow: string;
  /** Until a plain driver is answered that a majority has its write. */
  readonly plain: number;
  /** Until the gateway answers that a write is done. */
  readonly petstore: number;
}

describe.skipIf(mongodMissing || networkMissing)("when the primary", { timeout: 240_000 }, () => {
  const stack = new AsyncDisposableStack();
  let network: Network;
  let set: ReplicaSet;
  let petstore: Petstore;
  let elections: Elections;
  let history: History;
  let load: Load;
  let watchers: readonly Watcher[];
  const resumptions: Resumption[] = [];

  beforeAll(async () => {
    network = stack.use(await startNetwork(3));
    // How long MongoDB itself believes in a silent member from which it reads.
    const silence = ["--setParameter", "oplogNetworkTimeoutBufferSeconds=1"];
    set = stack.use(await startReplicaSet({ members: 3, machines: network.machines, arguments: silence }));
    elections = stack.use(await watchElections(set.uri));
    petstore = stack.use(await startPetstore({ mongodbUri: set.uri }));
    history = createHistory(petstore.http);
    watchers = kinds.flatMap((kind) =>
      [petstore.connect, petstore.client].map((client) =>
        startWatcher({ client }, kind, { pause: () => sleep(50), snapshot: kind === "pet" }),
      ),
    );
    await Promise.all(watchers.map(({ begun }) => begun));
    load = await startLoad(history);
  }, 120_000);
  afterAll(() => stack.disposeAsync(), 60_000);

  const machineOf = (member: Member): Machine => network.machines[set.members.indexOf(member)] as Machine;
  const others = (member: Member) => set.members.filter((other) => other !== member);
  const cutFromOthers = (member: Member, ...more: string[]) =>
    network.cut(machineOf(member), [...others(member).map((other) => machineOf(other).address), ...more]);
  const heal = (member: Member) => network.heal(machineOf(member));

  /** So many further writes of each kind are answered. Never, and the test runs out of time. */
  async function served(count = ENOUGH): Promise<void> {
    const start = history.writes.length;
    const enough = () =>
      KINDS.every((kind) => history.writes.slice(start).filter((write) => write.kind === kind).length >= count);
    while (!enough()) await sleep(20);
  }

  /**
   * Every member has what the primary of this term has written. A set of three bears one failure at a time, and a member
   * that takes back its writes is one: it waits up to ten minutes for the source that is cut off meanwhile.
   */
  async function complete(): Promise<void> {
    const following = async () => {
      const { term, members } = await ask((await set.primary()).host, { replSetGetStatus: 1 });
      return members.map(
        (member: Document) => ["PRIMARY", "SECONDARY"].includes(member.stateStr) && member.optime.t === term,
      );
    };
    await eventually(following, [true, true, true]);
  }

  /** Deals the blow to the primary, waits until another one serves, and makes good again. */
  async function blow(deal: (primary: Member) => unknown, makeGood: (old: Member) => unknown): Promise<void> {
    await served();
    const number = elections.seen.length;
    const old = await set.primary();
    await deal(old);
    try {
      while (elections.seen.length === number) await sleep(20);
      await served(1);
      const { at = 0, proven } = elections.seen[number] ?? {};
      const first = history.writes.find((write) => write.at > at)?.at ?? Number.NaN;
      const plain = (await proven) ?? Number.NaN;
      const name = expect.getState().currentTestName?.split(" > ").at(-1) ?? "";
      resumptions.push({ blow: name, plain: Math.round(plain - at), petstore: Math.round(first - at) });
    } finally {
      await makeGood(old);
    }
    await complete();
    await served();
    expect(history.violations).toEqual([]);
  }

  test("is killed", async () => {
    await blow(
      (primary) => primary.signal("SIGKILL"),
      (old) => old.restart(),
    );
  });

  test("is paused until another one is elected", async () => {
    await blow(
      (primary) => primary.signal("SIGSTOP"),
      (old) => old.signal("SIGCONT"),
    );
  });

  test("is asked to step down", async () => {
    await blow(
      (primary) => ask(primary.host, { replSetStepDown: 5, secondaryCatchUpPeriodSecs: 5 }),
      () => {},
    );
  });

  test("is cut off from the others, and the services still reach it", async () => {
    await blow((primary) => cutFromOthers(primary), heal);
  });

  test("is cut off from everybody", async () => {
    await blow((primary) => cutFromOthers(primary, network.here), heal);
  });

  test("is killed with writes that no other has, which it takes back when it returns", async () => {
    const rollbacks = async ({ host }: Member) => (await ask(host, { replSetGetRBID: 1 })).rbid;
    let before = 0;
    let victim: Member | undefined;
    await blow(
      async (primary) => {
        victim = primary;
        before = await rollbacks(primary);
        await cutFromOthers(primary);
        // Longer than a write takes to arrive there, and shorter than it believes to be the primary.
        await sleep(500);
        primary.signal("SIGKILL");
      },
      async (old) => {
        await heal(old);
        await old.restart();
      },
    );
    await eventually(async () => (await rollbacks(victim as Member)) > before, true);
  });

  test("is killed soon after another member came back with an old state", async () => {
    await served();
    const [late] = others(await set.primary()) as [Member];
    late.signal("SIGKILL");
    await served(2 * ENOUGH);
    await late.restart();
    await blow(
      (primary) => primary.signal("SIGKILL"),
      (old) => old.restart(),
    );
  });

  test("is without the others for longer than any answer may take", async () => {
    await served();
    const paused = others(await set.primary());
    for (const member of paused) member.signal("SIGSTOP");
    await sleep(12_000);
    for (const member of paused) member.signal("SIGCONT");
    await complete();
    await served();
    expect(history.violations).toEqual([]);
  });

  test("has failed for the last time: nothing is lost, done twice, stale or left over", async () => {
    await load.stop();
    // What nobody foresaw is logged as an error.
    expect(petstore.logs().match(/^.*"level":"(error|fatal)".*$/gm) ?? []).toEqual([]);
    await eventually(async () => verdict(history, await readState(petstore)), []);
    const state = await readState(petstore);
    const watches = watchers.map(({ watch }) => watch);
    const known = () => knownHistory([...history.seen, ...toldTo(watches)], state);
    await eventually(async () => violationsIn(watches, known()), []);
    await Promise.all(watchers.map(({ stop }) => stop()));

    const { statuses, attempts, reads } = history;
    const streams = watchers.reduce((sum, watcher) => sum + watcher.streams(), 0);
    const seen = {
      elections: elections.seen.length,
      writes: attempts.length,
      reads: reads(),
      events: toldTo(watches).length,
    };
    const report = { ...seen, streams, statuses: Object.fromEntries(statuses), resumptions };
    process.stderr.write(`${JSON.stringify(report, null, 2)}\n`);
    expect([...statuses.keys()].filter((status) => !STATUSES.includes(status))).toEqual([]);
    // A run in which the blows did not hurt, or nobody was there to feel them, proves nothing.
    expect(resumptions).toHaveLength(7);
    expect(seen.elections).toBeGreaterThan(7);
    expect(statuses.get(503)).toBeGreaterThan(7);
    expect(seen.writes).toBeGreaterThan(500);
    expect(seen.reads).toBeGreaterThan(500);
    expect(seen.events).toBeGreaterThan(500);
  });
});
