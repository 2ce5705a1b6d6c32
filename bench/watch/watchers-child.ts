/**
 * Watches pets, in a process of its own: a thousand streams, and of each event when it came to each of them. What it is asked for
 * comes as messages of its parent, and each is answered by one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { PetService, WatchPetsResponseSchema } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { watchOver } from "./connection.ts";
import { type Quantiles, quantiles } from "./quantiles.ts";
import { type Due, now, writeNamed } from "./writes.ts";

export type Asked =
  | { readonly open: { readonly port: number; readonly watchers: number; readonly perConnection: number } }
  /** The writes that were stored, and so are told. */
  | { readonly delays: readonly Due[] }
  | { readonly close: true };

/** Milliseconds from when writes were due. */
export interface Delays {
  /** Of an event to a watcher, of all of both. */
  readonly each: Quantiles;
  /** Of an event until the last watcher had it. */
  readonly last: Quantiles;
  readonly delivered: number;
  /** Of those that should have been: events of stored writes, for each watcher. */
  readonly missing: number;
  /** Streams that ended. */
  readonly ended: number;
}

/** One address may have so many streams. */
const PER_ADDRESS = 20;
/** What has not come by then never will. */
const PATIENCE_MS = 10_000;

const path = `/${PetService.typeName}/${PetService.method.watchPets.name}`;

let arrivals = new Map<number, number[]>();
let ended = 0;
let closes: (() => void)[] = [];
let closed: Promise<unknown> = Promise.resolve();

/** All watchers are told the same bytes, so nearly all of them are known. */
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
    // As many at once as would come at once.
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
