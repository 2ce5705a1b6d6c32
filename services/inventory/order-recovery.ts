/**
 * How Inventory keeps in step with Order, whatever a crash or the restoring of an older copy has left: it ends reservations
 * whose order has ended, and remembers the highest order.
 */
import { background, type CallContext, outgoing } from "@petstore/rpc/call";
import * as s from "@petstore/store/document-schema";
import { type Collection, type Decide, type Infer, keep, put, schema } from "@petstore/store/port";
import { readTraceparent } from "@petstore/trace/context";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import type { Deps, Worker } from "../records/module.ts";
import { inTurn, tracedWork } from "../records/sagas.ts";
import { type InventoryDoc, valueFor } from "./model.ts";
import { highestOrder, type Reservation, reservationsIn } from "./rules.ts";
import type { InventoryContext } from "./service.ts";

const NAME = "inventory.reservations";
/** Longer than a create may take, in milliseconds. */
export const MIN_AGE_MS = 6_000;
/** Pause between two runs, in milliseconds. */
export const INTERVAL_MS = 2_000;
/** Most reservations asked about in one run: however many orders are open, a run costs no more. */
const MAX_ASKED = 1_000;
/** Reservations that wait for their age; beyond them no more are read. */
const MAX_WAITING = 5_000;
/** Entries read at once. */
const PAGE = 100;

interface Seen {
  readonly at: number;
  /** In which pass through all entries. */
  readonly round: number;
  readonly reservation: Reservation;
}

/**
 * Ends reservations whose order has ended. An order reserves its units before it is stored, and is complete or cancelled
 * before its units follow; a crash or a lost call in between leaves a reservation behind. So this worker asks Order, in
 * turn, about every reservation, and settles those of orders that are complete or have ended.
 *
 * A reservation may be older than its order for as long as a create takes. Asking earlier would be safe, but end the create;
 * so a reservation is asked about only when this process has seen it for longer. No stored time and no other clock counts.
 */
export function createReservationsWorker(context: InventoryContext) {
  const { clock, log, failpoint, entries, orders, highestOrder, commitOrder, releaseOrder } = context;
  const next = inTurn(
    (batch, callContext) => entries.list({ ...batch, where: { hasReservations: true } }, callContext),
    context,
  );
  /** The earliest first. */
  const waiting: Seen[] = [];
  /** Which entry was read last; one that is not above it begins another round. */
  const last = { id: 0, round: 0 };
  /** How many are unsettled in the round that is asked about, so far, and in the one before: a round may take many runs. */
  let unsettled = { round: 0, now: 0, before: 0 };

  /** Reads on from where the run before ended, until there is as much to ask about as in one run. */
  async function look(): Promise<void> {
    const read = new Set<number>();
    for (let found = 0; found < MAX_ASKED && waiting.length < MAX_WAITING; ) {
      const page = (await next(PAGE)).filter(({ _id }) => !read.has(_id));
      const at = clock();
      const seen = page.flatMap((entry) => {
        read.add(entry._id);
        highestOrder.note(entry);
        if (entry._id <= last.id) last.round++;
        last.id = entry._id;
        const { round } = last;
        return reservationsIn(entry).map((reservation) => ({ at, round, reservation }));
      });
      waiting.push(...seen);
      found += seen.length;
      if (page.length < PAGE) return; // there are no others
    }
  }

  async function settle({ petId, order, units, traceparent }: Reservation, state: OrderState, asking: CallContext) {
    if (state !== OrderState.COMPLETE && state !== OrderState.ENDED) return;
    // As a rule it has been settled since it was seen.
    const entry = await entries.get(petId, asking);
    if (!entry || valueFor(entry.reservations, order) === undefined) return;
    log.warn({ petId, order }, "units were still held for an order that is complete or has ended: settling them");
    await failpoint("inventory.reservation-ended");
    const left = { by: [readTraceparent(traceparent)] };
    await tracedWork(context, NAME, left, asking, async (callContext) => {
      if (state === OrderState.COMPLETE) await commitOrder(petId, order, units, callContext);
      else await releaseOrder(petId, order, callContext);
    });
  }

  function tally(due: readonly Seen[], isLeft: (i: number) => boolean): void {
    due.forEach(({ round }, i) => {
      if (round !== unsettled.round) unsettled = { round, now: 0, before: unsettled.now };
      if (isLeft(i)) unsettled.now++;
    });
  }

  async function resolve(due: readonly Seen[]): Promise<void> {
    const callContext = background(context, "reservations");
    const reservations = due.map(({ reservation }) => reservation);
    const asked = reservations.map(({ petId, order, tag }) => ({ petId: BigInt(petId), orderId: BigInt(order), tag }));
    const answer = orders.resolveReservations({ reservations: asked }, outgoing(clock, callContext));
    const { states } = await answer.catch((error) => {
      tally(due, () => true);
      throw error;
    });
    // UNSPECIFIED: of an order that can't be read.
    const stateOf = (i: number) => states[i] ?? OrderState.UNSPECIFIED;
    const settled = await Promise.allSettled(
      reservations.map((reservation, i) => settle(reservation, stateOf(i), callContext)),
    );
    tally(due, (i) => settled[i]?.status === "rejected" || stateOf(i) === OrderState.UNSPECIFIED);
    const failed = settled.filter((result) => result.status === "rejected");
    if (failed[0]) throw failed[0].reason;
  }

  return {
    /** Of the last round, how many are neither settled nor known to belong to an open order. */
    unsettled: () => Math.max(unsettled.now, unsettled.before),
    worker: {
      name: NAME,
      everyMs: INTERVAL_MS,
      async run() {
        const young = waiting.findIndex(({ at }) => clock() - at < MIN_AGE_MS);
        const due = waiting.splice(0, Math.min(MAX_ASKED, young < 0 ? waiting.length : young));
        await look();
        if (due.length > 0) await resolve(due);
        else if (waiting.length === 0) unsettled = { ...unsettled, now: 0, before: 0 };
        return due.length;
      },
    },
  };
}

const markSchema = s.object({ _id: s.string, rev: s.int, order: s.int });
type MarkDoc = Infer<typeof markSchema>;
export const MARKS = schema<MarkDoc>()("marks", {}, markSchema);

/** The only document. */
const HIGHEST_ORDER = "highest order";
/** Pause between two looks whether it has to be stored, in milliseconds. */
const HIGHEST_ORDER_MS = 1_000;

/**
 * The highest order that any entry has known. After Order was restored from an older copy, its counter goes on above it. It is
 * read from entries that are changed or read anyway, and stored behind them, so that no order costs a write for it. A crash
 * loses what was new in the last second, except for open orders, whose entries are read again.
 */
export function createHighestOrder(marks: Collection<MarkDoc>, deps: Pick<Deps, "clock" | "random">) {
  let [noted, stored] = [0, 0];
  return {
    /** Notes what an entry knows. */
    note(entry: InventoryDoc): void {
      noted = Math.max(noted, highestOrder(entry));
    },
    async get(callContext: CallContext): Promise<number> {
      const mark = await marks.get(HIGHEST_ORDER, { ...callContext, latest: true });
      return Math.max(noted, mark?.order ?? 0);
    },
    worker: {
      name: "inventory.highest-order",
      everyMs: HIGHEST_ORDER_MS,
      async run() {
        if (noted <= stored) return 0;
        stored = await marks.update(HIGHEST_ORDER, raise(noted), background(deps, "highest-order"));
        return 1;
      },
    } satisfies Worker,
  };
}

export type HighestOrder = ReturnType<typeof createHighestOrder>;

/** Raises the mark, which never falls. */
const raise =
  (order: number): Decide<MarkDoc, number> =>
  (doc) =>
    doc && doc.order >= order ? keep(doc.order) : put({ _id: HIGHEST_ORDER, order }, order);
