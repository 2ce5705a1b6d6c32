/**
 * Watches pets over a thousand streams, in a process of its own, and records when each event arrived on each stream. The
 * parent sends requests as messages, and each gets one message as its answer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { PetService, WatchPetsResponseSchema } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { watchOver } from "./connection.ts";
import { type Quantiles, quantiles } from "./quantiles.ts";
import { type Due, now, writeNamed } from "./writes.ts";

export type Asked =
  | { readonly open: { readonly port: number; readonly watchers: number; readonly perConnection: number } }
  /** The writes that were stored, each of which makes an event. */
  | { readonly delays: readonly Due[] }
  | { readonly close: true };

/** Milliseconds from when writes were due. */
export interface Delays {
  /** Of each event at each watcher. */
  readonly each: Quantiles;
  /** Of each event at its last watcher. */
  readonly last: Quantiles;
  readonly delivered: number;
  /** Events that did not arrive, of one per stored write and watcher. */
  readonly missing: number;
  /** Number of streams that ended. */
  readonly ended: number;
}

/** How many streams one address may have. */
const PER_ADDRESS = 20;
/** Events that have not arrived by then count as missing. */
const PATIENCE_MS = 10_000;

const path = `/${PetService.typeName}/${PetService.method.watchPets.name}`;

let arrivals = new Map<number, number[]>();
let ended = 0;
let closes: (() => void)[] = [];
let closed: Promise<unknown> = Promise.resolve();

/** The last message. All watchers get the same bytes, so it rarely has to be decoded. */
let known: { readonly bytes: Buffer; readonly write: number | undefined } | undefined;
function writeOf(message: Buffer): number | undefined {
  if (known?.bytes.equals(message)) return known.write;
  const { response } = fromBinary(WatchPetsResponseSchema, message);
  const write = response.case === "event" ? writeNamed(response.value.pet?.name) : undefined;
  known = { bytes: Buffer.from(message), write };
  return write;
}

async function open({ port, watchers, perConnection }: { port: number; watchers: number; perConnection: number }) {
  [arrivals, ended, closes] = [new Map(), 0, []];
  const began: Promise<void>[] = [];
  const ends: Promise<void>[] = [];
  const addWatcher = () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    began.push(promise);
    const told = (message: Buffer) => {
      resolve();
      const write = writeOf(message);
      if (write === undefined) return;
      const all = arrivals.get(write) ?? [];
      arrivals.set(write, all);
      all.push(now());
    };
    const isOver = () => {
      ended++;
      reject(new Error("A watch ended before it began."));
    };
    return { told, ended: isOver };
  };
  for (let opened = 0; opened < watchers; opened += perConnection) {
    const all = Array.from({ length: Math.min(perConnection, watchers - opened) }, addWatcher);
    const from = `127.0.1.${1 + Math.floor(opened / PER_ADDRESS)}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.push(promise);
    closes.push(watchOver({ port, from, path }, all, resolve));
    // Opens 100 streams at a time and waits for these.
    if (opened % 100 === 0) await Promise.all(began);
  }
  closed = Promise.all(ends);
  await Promise.all(began);
  return watchers;
}

async function delays(due: readonly Due[], watchers: number): Promise<Delays> {
  const isHere = ([write]: Due) => (arrivals.get(write)?.length ?? 0) >= watchers;
  for (const end = now() + PATIENCE_MS; !due.every(isHere) && now() < end; ) await sleep(20);
  const found = due.map(([write, dueAt]) => (arrivals.get(write) ?? []).map((at) => at - dueAt));
  const each = found.flat();
  return {
    each: quantiles(each),
    last: quantiles(found.map((all) => Math.max(0, ...all))),
    delivered: each.length,
    missing: due.length * watchers - each.length,
    ended,
  };
}

if (process.send) {
  let watchers = 0;
  process.once("disconnect", () => process.exit());
  const answer = async (asked: Asked) => {
    if ("open" in asked) {
      watchers = await open(asked.open);
      return watchers;
    }
    if ("delays" in asked) return delays(asked.delays, watchers);
    for (const close of closes) close();
    await closed;
    return 0;
  };
  process.on("message", (asked: Asked) => {
    answer(asked).then(
      (result) => process.send?.({ result }),
      (error: Error) => process.send?.({ error: error.message }),
    );
  });
}
