/**
 * An open-loop generator: it sends requests when they are due, whatever became of earlier ones, and their delay counts from
 * when they were due (this avoids "coordinated omission"). It runs in a process of its own. Its plan is in a file; its result
 * is one line of JSON, after a line "phase" at the beginning of each phase.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "@petstore/runtime/clock";
import type { Request } from "../load/workloads.ts";
import { createConnections, toBytes } from "./connections.ts";
import { createCounts, type Kind } from "./counts.ts";

export interface GeneratorPlan {
  readonly url: string;
  /** The requests of the flood, sent in this order. */
  readonly requests: readonly Request[];
  /** The orders, placed in this order; each is completed as soon as it is placed. */
  readonly orders: readonly Request[];
  readonly ordersPerSecond: number;
  readonly phases: readonly { readonly seconds: number; readonly perSecond: number }[];
  /** Number of concurrent callers beside the flood; each waits for its answer before the next request. */
  readonly callers?: number;
  readonly connections: number;
  readonly seed: number;
}

const plan = JSON.parse(readFileSync(process.argv[2] as string, "utf8")) as GeneratorPlan;
const random = seededRandom(plan.seed);
const base = new URL(plan.url);
const connections = createConnections(base, plan.connections);
const [flood, orders] = [plan.requests, plan.orders].map((all) => all.map((one) => toBytes(one, base.host)));
const counts = createCounts(plan.phases.length);
const started = performance.now();

let unanswered = 0;
function ask(kind: Kind, phase: number, dueAt: number, bytes: Buffer, then?: (body: Buffer) => void): void {
  unanswered++;
  counts.sent(kind, phase);
  connections.send(bytes, (status, body) => {
    unanswered--;
    const now = performance.now();
    counts.answered(kind, phase, { status, ms: now - dueAt, dueAt: dueAt - started });
    if (status === 201) then?.(body);
  });
}

const turn = (all: readonly Buffer[] = []) => {
  let next = 0;
  return () => all[next++ % all.length] as Buffer;
};
const [nextFlood, nextOrder] = [turn(flood), turn(orders)];

function order(phase: number, dueAt: number): void {
  ask("place", phase, dueAt, nextOrder(), (body) => {
    const { id } = JSON.parse(`${body}`) as { id: number };
    const completion = { method: "PATCH", path: `/store/orders/${id}`, body: '{"complete":true}' };
    ask("complete", phase, performance.now(), toBytes(completion, base.host));
  });
}

/** Random moments (a Poisson process), with this many per second on average. */
function poisson(perSecond: number, from: number) {
  const gap = () => (perSecond > 0 ? -Math.log(1 - random()) * (1000 / perSecond) : Number.POSITIVE_INFINITY);
  let due = from + gap();
  return (now: number, send: (dueAt: number) => void) => {
    for (; due <= now; due += gap()) send(due);
  };
}

async function openLoop(phase: number, from: number, perSecond: number, until: number): Promise<void> {
  const floods = poisson(perSecond, from);
  const all = poisson(plan.ordersPerSecond, from);
  for (;;) {
    const now = Math.min(performance.now(), until);
    floods(now, (dueAt) => ask("flood", phase, dueAt, nextFlood()));
    all(now, (dueAt) => order(phase, dueAt));
    if (now === until) return;
    await sleep(1);
  }
}

async function closedLoop(callers: number, until: number): Promise<void> {
  const caller = async () => {
    while (performance.now() < until) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const dueAt = performance.now();
      unanswered++;
      counts.sent("flood", 0);
      connections.send(nextFlood(), (status) => {
        unanswered--;
        counts.answered("flood", 0, { status, ms: performance.now() - dueAt, dueAt: dueAt - started });
        resolve();
      });
      await promise;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

let from = performance.now();
for (const [phase, { seconds, perSecond }] of plan.phases.entries()) {
  process.stdout.write("phase\n");
  const until = from + seconds * 1000;
  await Promise.all([
    openLoop(phase, from, perSecond, until),
    ...(plan.callers === undefined ? [] : [closedLoop(plan.callers, until)]),
  ]);
  from = until;
}
/** Requests without an answer by then count as unanswered. */
const END_MS = 12_000;
for (const end = performance.now() + END_MS; unanswered > 0 && performance.now() < end; ) await sleep(20);
connections.close();
process.stdout.write(`${JSON.stringify({ ...counts.result(), unanswered, connections: connections.open() })}\n`);
process.exit();
