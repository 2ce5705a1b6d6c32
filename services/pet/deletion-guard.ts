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
import type { Deps } from "../resource/deps.ts";
import { createExpiry, removeExpired } from "../resource/expiry.ts";
import { isDeletionUnderWay } from "./advance-intent.ts";
import type { DeletionGuards, PetDoc, Pets } from "./model.ts";

/** How long a write waits for a category whose deletion is undecided. */
const WAIT_TIMEOUT_MS = 1_000;
const POLL_INTERVAL_MS = 25;
/** Categories remembered as existing. Forgetting one costs a call. */
const MAX_REMEMBERED = 100_000;

/** Whether pets may join the category. "deleting": the deletion is undecided, and so is this. */
export type GuardVerdict = "open" | "deleting" | "deleted";

interface GuardContext extends Pick<Deps, "clock" | "sleep" | "failpoint" | "retention"> {
  readonly pets: Pets;
  readonly guards: DeletionGuards;
  readonly categories: Client<typeof CategoryInternalService>;
  /** Takes the deletion of a pet to its end. */
  readonly finishDeletion: (doc: PetDoc, callContext: CallContext) => Promise<unknown>;
}

export function createDeletionGuard(context: GuardContext) {
  const { clock, sleep, failpoint, retention, pets, guards, finishDeletion, categories } = context;
  /**
   * When categories were last seen to exist. That one was deleted since is known from its guard, which is kept for longer
   * than these memories.
   */
  const seenAt = new Map<number, number>();
  const expiry = createExpiry(retention.tombstones, clock);
  let lastTime = clock();

  /** After the clock was set back, the age of memories is unknown, and guards may have been removed: all is forgotten. */
  function now(): number {
    const time = clock();
    if (time < lastTime) seenAt.clear();
    lastTime = time;
    return time;
  }
  const remembers = (id: number) => now() - (seenAt.get(id) ?? Number.NEGATIVE_INFINITY) < retention.claims.ageMs;

  const stateOf = async (id: number, callContext: CallContext) => {
    const { state, op } = await categories.getCategoryState({ categoryId: BigInt(id) }, outgoing(clock, callContext));
    return { state, op: Number(op) };
  };

  /** Reads the guard, and asks Category when it is closed. */
  async function check(id: number, callContext: CallContext): Promise<GuardVerdict> {
    const guard = await guards.get(id, callContext);
    if (!guard?.closed) return "open";
    const { state, op } = await stateOf(id, callContext);
    if (state === CategoryState.DELETED) return "deleted";
    if (state === CategoryState.DELETING || op !== guard.op) return "deleting";
    // The deletion that closed the guard stepped back, and crashed before it opened the guard.
    await failpoint("guard.left-closed");
    await open(id, op, callContext);
    return "open";
  }

  const open = (id: number, op: number, callContext: CallContext) =>
    guards.update(
      id,
      (guard) => (guard?.closed && guard.op === op ? put({ ...guard, closed: false }, undefined) : keep(undefined)),
      callContext,
    );

  /**
   * Whether there is a member. A corrupt pet counts: its category must still exist when the pet can be read again. A pet
   * that is being deleted may be gone for callers already, so its deletion is finished; it counts if that fails.
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

  /** First those that are joining, then the members: a pet that joins in between is found by the second look. */
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
    /** Before anything is written: does the category exist, and does it stay? */
    checkBeforeClaim: (id: number, callContext: CallContext): Promise<GuardVerdict> =>
      untilDecided(async () => {
        if (remembers(id) || (await guards.get(id, callContext))) return check(id, callContext);
        const asked = now();
        if ((await stateOf(id, callContext)).state === CategoryState.DELETED) return "deleted";
        if (seenAt.size >= MAX_REMEMBERED) seenAt.clear();
        if (asked <= now()) seenAt.set(id, asked);
        return "open";
      }, callContext),

    /** After the pet has claimed its place: from here on only the guard decides. */
    checkAfterClaim: (id: number, callContext: CallContext): Promise<GuardVerdict> =>
      untilDecided(() => check(id, callContext), callContext),

    /** Lets pets join again, unless a later deletion than `op` has closed the guard. */
    open,

    /** Closes the guard for deletion `op` and says whether the category has members. */
    async close(id: number, op: number, callContext: CallContext): Promise<Membership> {
      const closed = await guards.update(
        id,
        (guard) => {
          if (!guard) return put({ _id: id, closed: true, op }, true);
          return op > guard.op ? put({ ...guard, closed: true, op }, true) : keep(op === guard.op && guard.closed);
        },
        callContext,
      );
      if (!closed) return Membership.STALE;
      await failpoint("guard.closed");
      return (await hasMembers(id, callContext)) ? Membership.SOME : Membership.NONE;
    },

    /**
     * Removes guards that were closed long ago for a category that is deleted, `limit` at most, and opens those that were
     * left closed. Resolves to how many were removed.
     */
    removeExpired(limit: number, callContext: CallContext): Promise<number> {
      now();
      return removeExpired(
        expiry,
        {
          list: (endedOn, most, call) => guards.list({ where: { endedOn }, limit: most, order: "asc" }, call),
          async remove({ _id }, call) {
            if ((await check(_id, call)) !== "deleted") return false;
            // A pet that is still being created or moved must find it closed.
            if (await hasMembers(_id, call)) return false;
            await guards.remove(_id, (guard) => guard.closed && expiry.isExpired(guard.endedOn), call);
            return true;
          },
        },
        limit,
        callContext,
      );
    },
  };
}

export type DeletionGuard = ReturnType<typeof createDeletionGuard>;
