/**
 * The deletion guard: keeps pets from joining a category that is being deleted. Category decides whether a category exists;
 * Pet keeps a guard for each, open or closed. A pet claims its place first (a CREATING pet or an intent counts as a member)
 * and checks the guard afterwards; a deletion closes the guard first and looks for members afterwards. So one of the two
 * always sees the other.
 */
import type { Client } from "@connectrpc/connect";
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Corrupt, keep, put } from "@petstore/store/port";
import {
  type CategoryInternalService,
  CategoryState,
} from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { Membership } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { createExpiry, removeExpired } from "../records/expiry.ts";
import type { Deps } from "../records/module.ts";
import { isDeletionUnderWay } from "./change-pet.ts";
import type { DeletionGuards, PetDoc, Pets } from "./model.ts";

/** How long a write waits for a category whose deletion is undecided. */
const WAIT_TIMEOUT_MS = 1_000;
const POLL_INTERVAL_MS = 25;
/** Most categories remembered as existing. Forgetting one costs a call to Category. */
const MAX_REMEMBERED = 100_000;

/** Whether pets may join the category. "deleting": not known yet, because its deletion is undecided. */
export type GuardVerdict = "open" | "deleting" | "deleted";

interface GuardContext extends Pick<Deps, "clock" | "sleep" | "failpoint" | "retention"> {
  readonly pets: Pets;
  readonly guards: DeletionGuards;
  readonly categories: Client<typeof CategoryInternalService>;
  /** Advances the deletion of a pet to its end. */
  readonly finishDeletion: (doc: PetDoc, callContext: CallContext) => Promise<unknown>;
}

export function createDeletionGuard(context: GuardContext) {
  const { clock, sleep, failpoint, retention, pets, guards, finishDeletion, categories } = context;
  /** When each category was last seen to exist. Guards are kept for longer, and say if it was deleted since. */
  const seenAt = new Map<number, number>();
  const expiry = createExpiry(retention.tombstones, clock);
  const remembers = (id: number) => clock() - (seenAt.get(id) ?? Number.NEGATIVE_INFINITY) < retention.keys.ageMs;

  const stateOf = async (id: number, callContext: CallContext, knownOp = 0) => {
    const asked = { categoryId: BigInt(id), knownOp: BigInt(knownOp) };
    const { state, op } = await categories.getCategoryState(asked, outgoing(clock, callContext));
    return { state, op: Number(op) };
  };

  /** Reads the guard. Asks Category when it is closed, and when there is none and the category is not remembered. */
  async function checkNow(id: number, callContext: CallContext): Promise<GuardVerdict> {
    const guard = await guards.get(id, callContext);
    if (!guard && !remembers(id)) return ask(id, callContext);
    if (!guard?.closed) return "open";
    const { state, op } = await stateOf(id, callContext, guard.op);
    if (state === CategoryState.DELETED) return "deleted";
    if (state === CategoryState.DELETING || op !== guard.op) return "deleting";
    // The deletion that closed the guard was given up, but its process crashed before it opened the guard.
    await failpoint("guard.left-closed");
    await open(id, op, callContext);
    return "open";
  }

  /** Asks whether the category exists, and remembers that it does. */
  async function ask(id: number, callContext: CallContext): Promise<GuardVerdict> {
    const asked = clock();
    if ((await stateOf(id, callContext)).state === CategoryState.DELETED) return "deleted";
    if (seenAt.size >= MAX_REMEMBERED) seenAt.clear();
    seenAt.set(id, asked);
    return "open";
  }

  const open = (id: number, op: number, callContext: CallContext) =>
    guards.update(
      id,
      (guard) => (guard?.closed && guard.op === op ? put({ ...guard, closed: false }, undefined) : keep(undefined)),
      callContext,
    );

  /**
   * Whether any pet matches. A corrupt pet counts: its category must still exist when the pet can be read again. If a pet
   * is being deleted, callers may see it as gone already, so its deletion is finished first; the pet counts if that
   * fails.
   */
  async function isAny(where: { joining: number } | { member: number }, callContext: CallContext): Promise<boolean> {
    let failed: number | undefined;
    try {
      for (;;) {
        const [first] = await pets.list({ where, limit: 1, order: "asc", strict: true }, callContext);
        if (!first || !isDeletionUnderWay(first) || first._id === failed) return first !== undefined;
        failed = first._id;
        await finishDeletion(first, callContext).catch(() => {});
      }
    } catch (error) {
      if (error instanceof Corrupt) return true;
      throw error;
    }
  }

  /** Looks for joining pets first and for members second, so that a pet that joins in between is found. */
  const hasMembers = async (id: number, callContext: CallContext): Promise<boolean> =>
    (await isAny({ joining: id }, callContext)) || (await isAny({ member: id }, callContext));

  /** Asks again until the deletion is decided or the time is up. */
  async function untilDecided(ask: () => Promise<GuardVerdict>, { deadline }: CallContext): Promise<GuardVerdict> {
    const until = Math.min(clock() + WAIT_TIMEOUT_MS, deadline - POLL_INTERVAL_MS);
    for (;;) {
      const verdict = await ask();
      if (verdict !== "deleting" || clock() + POLL_INTERVAL_MS > until) return verdict;
      await sleep(POLL_INTERVAL_MS);
    }
  }

  return {
    /**
     * Checks that the category exists and is not being deleted: before anything is written, so that a refusal leaves nothing
     * behind, and once more after the pet has claimed its place.
     */
    check: (id: number, callContext: CallContext): Promise<GuardVerdict> =>
      untilDecided(() => checkNow(id, callContext), callContext),

    /** Lets pets join again, unless a later deletion than `op` has closed the guard. */
    open,

    /** Closes the guard for deletion `op` and says whether the category has members, and the latest deletion it knows. */
    async close(id: number, op: number, callContext: CallContext) {
      const { closed, latestOp } = await guards.update(
        id,
        (guard) => {
          if (guard && op <= guard.op) return keep({ closed: op === guard.op && guard.closed, latestOp: guard.op });
          return put({ ...guard, _id: id, closed: true, op }, { closed: true, latestOp: op });
        },
        callContext,
      );
      if (!closed) return { membership: Membership.STALE, latestOp: BigInt(latestOp) };
      await failpoint("guard.closed");
      return { membership: (await hasMembers(id, callContext)) ? Membership.SOME : Membership.NONE };
    },

    /**
     * Removes at most `most` guards that were closed long ago and whose category is deleted, and reopens those that a
     * crash left closed. Resolves to the number removed.
     */
    removeExpired: (most: number, call: CallContext): Promise<number> =>
      removeExpired(
        expiry,
        most,
        (endedOn, limit) => guards.list({ where: { endedOn }, limit, order: "asc" }, call),
        async ({ _id }) => {
          if ((await checkNow(_id, call)) !== "deleted") return false;
          // A pet that is still being created or moved must find the guard closed.
          if (await hasMembers(_id, call)) return false;
          return guards.remove(_id, (guard) => guard.closed && expiry.isExpired(guard.endedOn), call);
        },
      ),
  };
}

export type DeletionGuard = ReturnType<typeof createDeletionGuard>;
