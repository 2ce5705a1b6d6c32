/**
 * Idempotency keys: one key, one record, whatever is retried, duplicated or reordered.
 *
 * A key document says which record the key stands for. The record's id is taken first and then claimed, so that whoever
 * comes with the same key finds that record and drives it on. A refusal frees the key before it is answered and raises
 * `floor`, so that no attempt that slept through the refusal can wake up and succeed.
 */
import { createHash } from "node:crypto";
import type { Budget, Call } from "@petstore/rpc/call";
import { FLOOR, SEEN_HEADER } from "@petstore/rpc/client/keyed-retry";
import { type Collection, type DocumentSchema, type Infer, keep, put, schema } from "@petstore/store/port";
import * as z from "zod";
import type { Deps } from "./deps.ts";
import { DomainError } from "./errors.ts";
import { createExpiry, removeOverdue } from "./expiry.ts";

const ROUNDS = 6;
const FRESH_IDS = 2;

const keyShape = z.object({
  _id: z.string(),
  rev: z.int(),
  /** The record that the key stands for. Absent: the key is free. */
  id: z.int().optional(),
  fingerprint: z.string(),
  /** What the record is made from; the first answer is a function of it. */
  params: z.object({}) as DocumentSchema<object>,
  /** Ids up to here were refused under this key, or given up. */
  floor: z.int(),
  /** The period, an hour, in which the key was last claimed or its floor raised. */
  hour: z.int(),
});
type KeyDoc = Infer<typeof keyShape>;
export const KEYS = schema<KeyDoc>()("keys", { hour: ["hour"] }, keyShape);
type Keys = Collection<KeyDoc, { readonly hour: readonly ["hour"] }>;

/** How a record stands: not written yet, not decided, decided one way or the other, or given up without a decision. */
export type Fate = "missing" | "undecided" | "accepted" | "refused" | "given up";

/** What keys must know of the records they stand for. */
export interface KeyedRecords {
  nextId(budget: Budget): Promise<number>;
  fate(id: number, budget: Budget): Promise<Fate>;
  /** Writes a record that is missing as one given up. */
  giveUp(id: number, budget: Budget): Promise<void>;
}

/** How driving a record ended. */
export type Ended<A> =
  | { readonly fate: "accepted"; readonly answer: A }
  | { readonly fate: "refused"; readonly error: DomainError }
  | { readonly fate: "given up" };

export const accepted = <A>(answer: A): Ended<A> => ({ fate: "accepted", answer });
export const refused = (error: DomainError): Ended<never> => ({ fate: "refused", error });
export const givenUp: Ended<never> = { fate: "given up" };

interface KeyUse<P> {
  readonly key: string;
  readonly fingerprint: string;
  readonly params: P;
  readonly seen: number | undefined;
}

/** What a key stood for when it was looked at. Without a floor, whatever the floor is now. */
type From = { readonly id: number | undefined; readonly floor?: number } | KeyDoc;

const sha256 = (text: string): string => createHash("sha256").update(text).digest("base64url");

function keyUse<P extends object>(call: Call, rpc: string, requestId: string, params: P): KeyUse<P> {
  const seen = call.headers.get(SEEN_HEADER);
  return {
    key: sha256(JSON.stringify([call.caller, rpc, requestId])),
    fingerprint: sha256(JSON.stringify(params)),
    params,
    seen: seen !== null && /^\d{1,16}$/.test(seen) ? Number(seen) : undefined,
  };
}

export interface CreateOptions<P> {
  readonly rpc: string;
  readonly requestId: string | undefined;
  /** Members in a fixed order, so that equal requests have equal fingerprints. */
  readonly params: P;
}

/** Sends `Idempotent-Replayed` with every answer to a key but the first. */
export const REPLAYED_HEADER = "idempotent-replayed";

export function createKeys(
  keys: Keys,
  records: KeyedRecords,
  { clock, point, retention }: Pick<Deps, "clock" | "point" | "retention">,
) {
  const expiry = createExpiry(retention.claims, clock);
  const isExpired = ({ hour }: KeyDoc) => expiry.isOver(hour);

  /** Frees the key, so that a refusal may be answered. False when another attempt has taken it over. */
  async function release(use: KeyUse<object>, id: number | undefined, budget: Budget): Promise<boolean> {
    const { key, fingerprint, params } = use;
    // Taken now: the refused id is too low, as other attempts have taken theirs since.
    const floor = await records.nextId(budget);
    const hour = expiry.period();
    await point("key.freeing");
    return keys.update(
      key,
      (doc) => {
        if (doc?.id !== undefined && doc.id !== id) return keep(false);
        const raised = Math.max(doc?.floor ?? 0, floor);
        // Also when the key has expired meanwhile: the floor has to outlive all that set out before the refusal.
        return put({ fingerprint, params, ...doc, _id: key, id: undefined, floor: raised, hour }, true);
      },
      budget,
    );
  }

  /** Makes the key stand for `id`, if it still stands for `from` and nobody was refused since its floor was looked at. */
  function take({ key, fingerprint, params }: KeyUse<object>, from: From, id: number, budget: Budget) {
    const hour = expiry.period();
    return keys.update(
      key,
      (doc) => {
        const floor = doc?.floor ?? 0;
        if (doc?.id !== from.id || (from.floor ?? floor) !== floor) return keep(false);
        return put({ ...doc, _id: key, id, fingerprint, params, floor: Math.max(floor, from.id ?? 0), hour }, true);
      },
      budget,
    );
  }

  /** Whoever asked with another body until now was refused: what they sent must not take the key when it is free. */
  async function raise({ key }: KeyUse<object>, budget: Budget): Promise<void> {
    const floor = await records.nextId(budget);
    const hour = expiry.period();
    await keys.update(
      key,
      (doc) => (doc ? put({ ...doc, floor: Math.max(doc.floor, floor), hour }, undefined) : keep(undefined)),
      budget,
    );
  }

  /** Finds the record that the key stands for, or makes it stand for `id`. */
  async function claim<P extends object>(use: KeyUse<P>, id: number, budget: Budget) {
    for (let round = 0; round < ROUNDS; round++) {
      const doc = await keys.get(use.key, { deadline: budget.deadline, latest: true });
      // The worker may not have come to it, and of its record there may be nothing left.
      if (doc && isExpired(doc)) {
        await keys.remove(use.key, isExpired, budget);
        continue;
      }
      if (doc?.id === undefined) {
        if (doc) checkFloor(use, doc.floor, id);
        const floor = doc?.floor ?? 0;
        if (await take(use, { id: undefined, floor }, id, budget)) return { id, params: use.params, joined: false };
        continue;
      }
      const fate = await records.fate(doc.id, budget);
      if (fate === "refused") await release(use, doc.id, budget);
      else if (fate === "given up") {
        checkFloor(use, doc.floor, id);
        if (await take(use, doc, id, budget)) return { id, params: use.params, joined: false };
      } else if (doc.fingerprint === use.fingerprint) return { id: doc.id, params: doc.params as P, joined: true };
      else if (fate === "missing") await records.giveUp(doc.id, budget);
      else if (fate === "accepted") throw reused();
      else {
        await raise(use, budget);
        throw inProgress("with another body");
      }
    }
    throw unfinished();
  }

  return {
    /** Makes one record, under a key or without one. `run` writes the record unless it is there and drives it to its end. */
    async create<P extends object, A>(
      call: Call,
      { rpc, requestId, params }: CreateOptions<P>,
      run: (id: number, params: P) => Promise<Ended<A>>,
    ): Promise<A> {
      const use = requestId === undefined ? undefined : keyUse(call, rpc, requestId, params);
      const first = await records.nextId(call);
      await point("key.id-taken");
      let id = first;
      let gaveUp: number | undefined;
      for (let round = 0, fresh = 0; round < ROUNDS && fresh <= FRESH_IDS; round++) {
        let claimed = { id, params, joined: false };
        if (use && gaveUp !== undefined) {
          // A fresh id takes the key over only from the one that was given up.
          const from = gaveUp;
          gaveUp = undefined;
          if (!(await take(use, { id: from }, id, call))) {
            id = first;
            continue;
          }
        } else if (use) claimed = await claim(use, id, call);
        await point("key.claimed");
        const ended = await run(claimed.id, claimed.params);
        if (ended.fate === "accepted") {
          if (claimed.joined) call.responseHeaders.set(REPLAYED_HEADER, "true");
          return ended.answer;
        }
        if (ended.fate === "refused") {
          if (!use || (await release(use, claimed.id, call))) throw ended.error;
          id = first;
        } else {
          fresh++;
          gaveUp = claimed.id;
          id = await records.nextId(call);
        }
      }
      throw unfinished();
    },

    /** Removes keys that have been kept long enough, `limit` at most. Returns how many. */
    sweep: (limit: number, budget: Budget): Promise<number> =>
      removeOverdue(
        expiry,
        {
          list: (hour, most, call) => keys.list({ where: { hour }, limit: most, order: "asc" }, call),
          async remove({ _id }, call) {
            await keys.remove(_id, isExpired, call);
            return true;
          },
        },
        limit,
        budget,
      ),
  };
}

/**
 * An attempt that set out before the key's last refusal must not succeed after it. The gateway says what it has seen and
 * asks again when sent back; of other callers it is only known whether their id was taken before.
 */
function checkFloor({ seen }: KeyUse<object>, floor: number, id: number): void {
  if (seen === undefined ? id > floor : seen >= floor) return;
  throw inProgress("by an attempt that ended meanwhile", seen === undefined ? undefined : { [FLOOR]: String(floor) });
}

const reused = () =>
  new DomainError("IDEMPOTENCY_KEY_REUSED", "The key already made a record from another body. Use a new key.");
const inProgress = (how: string, metadata?: Record<string, string>) =>
  new DomainError("IDEMPOTENCY_IN_PROGRESS", `The key is in use ${how}. Try again.`, metadata ? { metadata } : {});
const unfinished = () =>
  new DomainError("UNAVAILABLE", "The record could not be finished now. Try again with the same key.");
