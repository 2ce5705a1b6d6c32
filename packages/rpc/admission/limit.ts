/**
 * Which calls go first when there is not room for all, and how many may be under way at once: as many as don't make each other
 * wait for long. Found by measuring, as in Netflix' concurrency-limits (Gradient2) and Envoy's adaptive concurrency. Pure
 * functions.
 *
 * More concurrent calls increase the throughput until a resource is used up: a processor, a disk. Beyond that, calls only wait
 * for each other. So the delay of calls is compared with their delay when few are under way. If it is well above `TOLERANCE`
 * times that, the limit falls; else it rises, as long as there is demand.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { keyField } from "../client/failed-call.ts";

/**
 * The initial limit, and the least one after nothing was under way for a moment: a burst after a rest is no overload yet.
 */
export const START_LIMIT = 200;
/** So few calls do no harm, however slow they are, so that a single caller is not refused. */
export const MIN_LIMIT = 64;
/** A higher limit gains no throughput, and costs memory. */
export const MAX_LIMIT = 2_000;

/** With this many calls under way, itself included, a call is taken not to wait for others. */
export const FEW_CALLS = 4;

/** Calls may take this many times as long as when few are under way. */
export const TOLERANCE = 2.5;

/** Shorter delays count as this one: a few milliseconds are no sign of load. */
export const FLOOR_MS = 10;

/** The slowdown of one call counts as this at most, so that a single delayed call does not outweigh the others. */
const MAX_SLOWDOWN = 10;

/** The limit falls at most to this part of itself at a time: one slow window may be due to a pause of the whole machine. */
const MIN_GRADIENT = 0.8;

/** The delay of a call as a multiple of its delay when few are under way, with `FLOOR_MS` and `MAX_SLOWDOWN` applied. */
export const slowdown = (ms: number, baselineMs: number): number =>
  Math.min(MAX_SLOWDOWN, Math.max(ms, FLOOR_MS) / Math.max(baselineMs, FLOOR_MS));

/**
 * The next limit, from what was measured under the current one: the mean slowdown of the calls that ended, and how many were
 * under way at most. Its square root is added as room for bursts.
 */
export function nextLimit(limit: number, { slowdown, peak }: Record<"slowdown" | "peak", number>): number {
  const gradient = Math.max(MIN_GRADIENT, Math.min(1, TOLERANCE / slowdown));
  const next = limit * gradient + Math.sqrt(limit);
  // A limit that was not half used is not tested, so it does not grow beyond the initial one.
  const wanted = next > limit && peak < limit / 2 ? Math.max(limit, Math.min(next, START_LIMIT)) : next;
  return Math.max(MIN_LIMIT, Math.min(MAX_LIMIT, wanted));
}

/** Calls that the running median is made of; older ones hardly count. */
export const MEMORY = 50;

/**
 * The delay of calls when few are under way: a running median, which a single delayed call hardly changes. `calls` is the
 * number of calls that it was made of before.
 */
export const nextBaseline = (baselineMs: number, calls: number, ms: number): number =>
  calls === 0 ? Math.max(1, ms) : baselineMs * (1 + Math.sign(ms - baselineMs) / Math.min(MEMORY, calls + 1));

/**
 * The priority of calls follows from the contract: nobody sets it by hand. From the highest to the lowest, which is refused
 * first: `finish` changes or ends an existing record, such as completing or cancelling an order, which frees resources;
 * `create` begins a new one; `read` gets a named one; `list` searches.
 */
export const priorities = ["finish", "create", "read", "list"] as const;
export type Priority = (typeof priorities)[number];

const known = new WeakMap<DescMethod, Priority>();

/** A paginated read (AIP-158) or a stream is a `list`, a write that takes an idempotency key is a `create`. */
export function priorityOf(method: DescMethod): Priority {
  let priority = known.get(method);
  if (priority === undefined) {
    priority = read(method);
    known.set(method, priority);
  }
  return priority;
}

function read(method: DescMethod): Priority {
  const { idempotency, methodKind, input } = method;
  if (idempotency !== Level.NO_SIDE_EFFECTS) return keyField(method) === undefined ? "finish" : "create";
  return methodKind !== "unary" || input.fields.some(({ name }) => name === "page_token") ? "list" : "read";
}
