/**
 * Two of every process, restarted one after the other under load: no request fails, whichever way it comes in, all that was
 * acknowledged is there, once, and whoever watches is told all of it.
 *
 * `ROLLING_REQUESTS=100000 ROLLING_DOORS=http1` is the full length by one of the ways. It tells after each round of restarts
 * what it has seen so far.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { violationsIn } from "../checker/events.ts";
import { writeOf } from "../checker/state.ts";
import { eventually } from "../harness/eventually.ts";
import { openGrpc } from "../harness/grpc.ts";
import { type Launched, launch, procMissing } from "../harness/launched.ts";
import { mongodbMissing, openPlace } from "../harness/mongodb.ts";
import { watchWrites } from "../harness/mongodb-writes.ts";
import { readState } from "../harness/stores.ts";
import * as doors from "../workload/doors.ts";
import { rollingDoors, rollingRequests } from "../workload/runs.ts";
import { clients, startSelling } from "../workload/selling.ts";
import { watched } from "../workload/watched.ts";
import { startWatcher, type Watcher } from "../workload/watchers.ts";

/** Clients by each way in, each waiting for its answer before it asks again: more for a longer run. */
const CLIENTS = Math.min(32, Math.ceil(rollingRequests / 250));
/** Reads to a write. */
const READS = 19;
/** The load is measured at its peak by so many requests, and then this part of it is kept up. */
const PEAK_REQUESTS = 500;
const LOAD = 0.7;
/** Before the next one, as an orchestrator waits: it can't see whether the callers of a process have come back to it. */
const MIN_READY_MS = 3_000;
/** Generous: a client that is idle for longer, on a machine that is busy, is none of the petstore's. */
const LAME_DUCK = "3s";

type Name = keyof typeof ways;
const ways = { http1: doors.http1, http2: doors.http2, grpcJs: doors.grpcJs, connectNode: doors.connectNode };
const chosen = (rollingDoors ?? Object.keys(ways)) as Name[];

/** Lets so many begin in a second, once it knows how many. */
function createPace() {
  let gapMs = 0;
  let next = 0;
  return {
    set(perSecond: number) {
      gapMs = 1000 / perSecond;
    },
    async pause() {
      if (gapMs === 0) return;
      const now = performance.now();
      next = Math.max(next + gapMs, now);
      if (next > now) await sleep(next - now);
    },
  };
}

/** Pets and orders, through the gateways and at the services, there at another replica for each stream. */
async function startWatching(petstore: Launched): Promise<readonly Watcher[]> {
  const throughGateways = createConnectTransport({ baseUrl: petstore.http, httpVersion: "1.1" });
  const watchers = (["pet", "order"] as const).flatMap((kind) => {
    const replicas = petstore.urls(kind).map((baseUrl) => openGrpc(baseUrl).transport);
    const inTurn = () => {
      const [next = throughGateways] = replicas.splice(0, 1);
      replicas.push(next);
      return next;
    };
    return [() => throughGateways, inTurn].map((transport) =>
      startWatcher({ client: (desc) => createClient(desc, transport()) }, kind, { pause: () => sleep(50) }),
    );
  });
  await Promise.all(watchers.map(({ begun }) => begun));
  return watchers;
}

async function rollingRestart(petstore: Launched, mongodbUri: string): Promise<void> {
  await using writes = await watchWrites(mongodbUri);
  const watchers = await startWatching(petstore);
  const pace = createPace();
  const open = chosen.map((name) => {
    const door = ways[name](petstore);
    return { name, door, ...watched(door, pace.pause) };
  });
  let isRestarting = false;
  const requests = () => open.map(({ seen }) => seen.requests);
  const total = () => requests().reduce((sum, some) => sum + some, 0);
  const selling = startSelling(
    open.flatMap(({ send }) => clients(CLIENTS, send)),
    // At the peak a call may be refused: that is sent again, and does not count.
    { reads: READS, withoutKeys: () => isRestarting },
  );
  await selling.more(open.length * CLIENTS * 2);
  const [before, startedAt] = [total(), performance.now()];
  while (total() < before + PEAK_REQUESTS) await selling.more(1);
  const peak = (total() - before) / ((performance.now() - startedAt) / 1000);
  pace.set(LOAD * peak);
  for (const { seen } of open) Object.assign(seen, { requests: 0, longestMs: 0, failures: [] });
  isRestarting = true;
  let restarts = 0;
  while (restarts === 0 || Math.min(...requests()) < rollingRequests) {
    for (const name of petstore.names) {
      await petstore.restart(name);
      restarts++;
      await Promise.all(open.map(({ door }) => door.connected()));
      await sleep(MIN_READY_MS);
    }
    const met = open.map(({ name, door, seen }) => [
      name,
      { ...seen, failures: seen.failures.length, retries: door.retries() },
    ]);
    process.stderr.write(`${JSON.stringify({ peak: Math.round(peak), restarts, ...Object.fromEntries(met) })}\n`);
  }
  await selling.end();
  expect(open.flatMap(({ name, seen }) => seen.failures.map((failure) => `${name} ${failure}`))).toEqual([]);
  await selling.check(petstore.http, () => readState({ store: { dataDir: "", mongodbUri } }));
  const history = () => writes.all.map(({ collection, after }) => writeOf(collection, after));
  const watches = watchers.map(({ watch }) => watch);
  // The last of them may still be on their way.
  await eventually(async () => violationsIn(watches, history()), []);
  for (const { stop, streams } of watchers) {
    await stop();
    expect(streams()).toBeGreaterThan(1);
  }
  expect(petstore.output().match(/^.*"level":"(error|fatal)".*$/gm) ?? []).toEqual([]);
  for (const { door } of open) door.close();
}

describe.skipIf(mongodbMissing || procMissing)("two of every process, restarted in turn", () => {
  test("no request fails, and nothing is lost or done twice", { timeout: 3_600_000 }, async () => {
    await using place = await openPlace();
    await using petstore = await launch(place.uri, 2, { LAME_DUCK });
    await rollingRestart(petstore, place.uri);
  });
});
