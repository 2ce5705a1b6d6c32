/**
 * Which categories pets may join. Category owns whether a category exists; Pet owns the gate. A pet first claims its place
 * (a CREATING pet or an intent counts as a member) and then looks at the gate; a deletion first closes the gate and then
 * looks for members. So one of the two always sees the other.
 */
import type { Client } from "@connectrpc/connect";
import { type Budget, onward } from "@petstore/rpc/call";
import { Corrupt, keep, put } from "@petstore/store/port";
import {
  type CategoryInternalService,
  CategoryState,
} from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { Membership } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { createExpiry, removeOverdue } from "../resource/expiry.ts";
import { isLeaving } from "./advance-intent.ts";
import type { Gates, PetDoc, Pets } from "./model.ts";

/** How long a write waits for a category whose deletion is not decided, and how often it looks. */
const PATIENCE_MS = 1_000;
const LOOK_MS = 25;
/** Categories remembered as existing. Forgetting one costs a call. */
const REMEMBERED = 100_000;

export type Verdict = "go" | "gone" | "deleting";

interface Context extends Pick<Deps, "clock" | "sleep" | "point" | "retention"> {
  readonly pets: Pets;
  /** Takes the deletion of a pet to its end. */
  readonly endDeletion: (doc: PetDoc, budget: Budget) => Promise<unknown>;
  readonly gates: Gates;
  readonly categories: Client<typeof CategoryInternalService>;
}

export function createGatekeeper({ clock, sleep, point, retention, pets, gates, endDeletion, categories }: Context) {
  /**
   * When categories were seen to exist. When one is deleted, its gate says so; and by the time that the gate is removed,
   * nobody remembers it.
   */
  const seen = new Map<number, number>();
  const expiry = createExpiry(retention.tombstones, clock);
  let lastTime = clock();

  /** A clock that was set back says nothing of how old memories are, nor of the gates that were removed meanwhile. */
  function now(): number {
    const time = clock();
    if (time < lastTime) seen.clear();
    lastTime = time;
    return time;
  }
  const remembers = (id: number) => now() - (seen.get(id) ?? Number.NEGATIVE_INFINITY) < retention.claims.ageMs;

  const stateOf = async (id: number, budget: Budget) => {
    const { state, op } = await categories.getCategoryState({ categoryId: BigInt(id) }, onward(clock, budget));
    return { state, op: Number(op) };
  };

  /** Looks at the gate, and behind it when it is closed. */
  async function look(id: number, budget: Budget): Promise<Verdict> {
    const gate = await gates.get(id, budget);
    if (!gate?.closed) return "go";
    const { state, op } = await stateOf(id, budget);
    if (state === CategoryState.DELETED) return "gone";
    if (state === CategoryState.DELETING || op !== gate.op) return "deleting";
    // The deletion that closed it was given up, and whoever was to open it has not come to it.
    await point("gate.left-closed");
    await open(id, op, budget);
    return "go";
  }

  const open = (id: number, op: number, budget: Budget) =>
    gates.update(
      id,
      (gate) => (gate?.closed && gate.op === op ? put({ ...gate, closed: false }, undefined) : keep(undefined)),
      budget,
    );

  /**
   * A pet that can't be read counts as well: its category must not be gone when it can be read again. One that is just
   * being deleted may be gone for others already, and is taken to its end; it counts for as long as that fails.
   */
  async function isAny(where: { joining: number } | { member: number }, budget: Budget): Promise<boolean> {
    let left: number | undefined;
    try {
      for (;;) {
        const [first] = await pets.list({ where, limit: 1, order: "asc", strict: true }, budget);
        if (!first || !isLeaving(first) || first._id === left) return first !== undefined;
        left = first._id;
        await endDeletion(first, budget).catch(() => {});
      }
    } catch (error) {
      if (error instanceof Corrupt) return true;
      throw error;
    }
  }

  /** Asks again until the deletion is decided or the time is up. */
  async function wait(ask: () => Promise<Verdict>, { deadline }: Budget): Promise<Verdict> {
    const until = Math.min(clock() + PATIENCE_MS, deadline - LOOK_MS);
    for (;;) {
      const verdict = await ask();
      if (verdict !== "deleting" || clock() + LOOK_MS > until) return verdict;
      await sleep(LOOK_MS);
    }
  }

  return {
    /** Asks before anything is written: does the category exist, and does it stay? */
    admit: (id: number, budget: Budget): Promise<Verdict> =>
      wait(async () => {
        if (remembers(id) || (await gates.get(id, budget))) return look(id, budget);
        const asked = now();
        if ((await stateOf(id, budget)).state === CategoryState.DELETED) return "gone";
        if (seen.size >= REMEMBERED) seen.clear();
        if (asked <= now()) seen.set(id, asked);
        return "go";
      }, budget),

    /** Asks after the claim: from here on only the gate decides. */
    pass: (id: number, budget: Budget): Promise<Verdict> => wait(() => look(id, budget), budget),

    open,

    /** Removes gates that were closed long ago for a category that is gone, and opens those left closed. Returns how many. */
    sweep(limit: number, budget: Budget): Promise<number> {
      now();
      return removeOverdue(
        expiry,
        {
          list: (over, most, call) => gates.list({ where: { over }, limit: most, order: "asc" }, call),
          async remove({ _id }, call) {
            if ((await look(_id, call)) !== "gone") return false;
            // A pet that is being created or moved must still find it closed.
            if ((await isAny({ joining: _id }, call)) || (await isAny({ member: _id }, call))) return false;
            await gates.remove(_id, (gate) => gate.closed && expiry.isOver(gate.over), call);
            return true;
          },
        },
        limit,
        budget,
      );
    },

    /** Closes the gate for deletion `op` and says who is inside. */
    async close(id: number, op: number, budget: Budget): Promise<Membership> {
      const closed = await gates.update(
        id,
        (gate) => {
          if (!gate) return put({ _id: id, closed: true, op }, true);
          return op > gate.op ? put({ ...gate, closed: true, op }, true) : keep(op === gate.op && gate.closed);
        },
        budget,
      );
      if (!closed) return Membership.STALE;
      await point("gate.closed");
      // First those that are about to join: they become members, and never the other way round.
      const inside = (await isAny({ joining: id }, budget)) || (await isAny({ member: id }, budget));
      return inside ? Membership.SOME : Membership.NONE;
    },
  };
}

export type Gatekeeper = ReturnType<typeof createGatekeeper>;
