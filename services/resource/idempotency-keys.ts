/**
 * Idempotency keys: one key, one record, whatever is retried, duplicated or reordered.
 *
 * The service's half; the client's half is `withKeyedRetry` in packages/rpc, and `docs/reliability.md` explains both. An
 * attempt takes the id of its record first and then claims the key for it, so every later attempt under the key finds that
 * record and advances it. A refusal frees the key before it is answered and raises the fencing epoch, so that no attempt
 * that began before the refusal can succeed after it.
 */
import { createHash } from "node:crypto";
import type { Call, CallContext } from "@petstore/rpc/call";
import { EPOCH, SEEN_EPOCH_HEADER } from "@petstore/rpc/client/keyed-retry";
import type { Collection } from "@petstore/store/port";
import type { Deps } from "./deps.ts";
import { DomainError } from "./errors.ts";
import { createExpiry, removeExpired } from "./expiry.ts";
import {
  claim,
  epochOf,
  fence,
  free,
  isFenced,
  type KEYS,
  type KeyDoc,
  type KeyedAttempt,
  replace,
} from "./key-transitions.ts";

export { KEYS } from "./key-transitions.ts";

/** Times that one call tries again after a change by another attempt before it gives up. */
const MAX_ROUNDS = 6;
/** Most fresh ids that one call takes to replace abandoned records. */
const MAX_FRESH_IDS = 2;

type Keys = Collection<KeyDoc, (typeof KEYS)["indexes"]>;

/** How the creation of a record was resolved. "abandoned": it ended without being accepted or refused. */
export type Resolution = "unwritten" | "undecided" | "accepted" | "refused" | "abandoned";

/** What keys need from the records that they refer to. */
export interface KeyedRecords {
  nextId(callContext: CallContext): Promise<number>;
  resolutionOf(id: number, callContext: CallContext): Promise<Resolution>;
  /** Writes an abandoned record in place of one that was never written. */
  abandon(id: number, callContext: CallContext): Promise<void>;
}

/** How the saga of a record ended. */
export type Resolved<A> =
  | { readonly resolution: "accepted"; readonly answer: A }
  | { readonly resolution: "refused"; readonly error: DomainError }
  | { readonly resolution: "abandoned" };

export const accepted = <A>(answer: A): Resolved<A> => ({ resolution: "accepted", answer });
export const refused = (error: DomainError): Resolved<never> => ({ resolution: "refused", error });
export const abandoned: Resolved<never> = { resolution: "abandoned" };

/** The record that an attempt advances: its own, or the one of an earlier attempt. */
interface Claimed<P> {
  readonly id: number;
  readonly params: P;
  readonly isReplay: boolean;
}

export interface CreateOptions<P> {
  readonly rpc: string;
  readonly requestId: string | undefined;
  /** Members in a fixed order, so that equal requests have equal fingerprints. */
  readonly params: P;
}

/** The response header Idempotent-Replayed, sent with every answer to a key but the first. */
export const REPLAYED_HEADER = "idempotent-replayed";

export function createKeys(
  keys: Keys,
  records: KeyedRecords,
  { clock, failpoint, retention }: Pick<Deps, "clock" | "failpoint" | "retention">,
) {
  const expiry = createExpiry(retention.claims, clock);
  const isExpired = ({ hour }: KeyDoc) => expiry.isExpired(hour);

  /**
   * Frees the key; must succeed before a refusal is answered. False when another attempt has replaced the record under
   * the key.
   */
  async function freeKey(attempt: KeyedAttempt<object>, refusedId: number, callContext: CallContext): Promise<boolean> {
    // The epoch is a fresh id: the refused id is too low, as other attempts have taken higher ids since.
    const epoch = await records.nextId(callContext);
    const hour = expiry.period();
    await failpoint("key.freeing");
    return keys.update(attempt.key, free(attempt, refusedId, epoch, hour), callContext);
  }

  async function fenceKey({ key }: KeyedAttempt<object>, callContext: CallContext): Promise<void> {
    const epoch = await records.nextId(callContext);
    await keys.update(key, fence(epoch, expiry.period()), callContext);
  }

  /** Claims the key for `id`, or resolves to the record that the key refers to already, for this attempt to advance. */
  async function claimOrJoin<P extends object>(
    attempt: KeyedAttempt<P>,
    id: number,
    callContext: CallContext,
  ): Promise<Claimed<P>> {
    const { key, params } = attempt;
    const own = { id, params, isReplay: false };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const doc = await keys.get(key, { ...callContext, latest: true });
      // The expiry worker may be late, and the record may be gone: an expired key must not refer to it any more.
      if (doc && isExpired(doc)) {
        await keys.remove(key, isExpired, callContext);
        continue;
      }
      const epoch = epochOf(doc);
      if (doc?.recordId === undefined) {
        checkFence(attempt, epoch, id);
        if (await keys.update(key, claim(attempt, id, epoch, expiry.period()), callContext)) return own;
        continue;
      }
      const resolution = await records.resolutionOf(doc.recordId, callContext);
      // The refused attempt crashed before it freed the key.
      if (resolution === "refused") await freeKey(attempt, doc.recordId, callContext);
      else if (resolution === "abandoned") {
        checkFence(attempt, epoch, id);
        if (await keys.update(key, replace(attempt, doc.recordId, id, expiry.period(), epoch), callContext)) return own;
      } else if (doc.fingerprint === attempt.fingerprint)
        return { id: doc.recordId, params: doc.params as P, isReplay: true };
      else await refuseOtherBody(attempt, doc.recordId, resolution, callContext);
    }
    throw unfinished();
  }

  /** Throws, unless the record was never written: then writes it as abandoned, so that its attempt can't write it any more. */
  async function refuseOtherBody(
    attempt: KeyedAttempt<object>,
    recordId: number,
    resolution: Resolution,
    callContext: CallContext,
  ) {
    if (resolution === "unwritten") return records.abandon(recordId, callContext);
    if (resolution === "accepted") throw reused();
    // This attempt is refused here: a copy of its request that is still on its way must not claim the key once the key is
    // free.
    await fenceKey(attempt, callContext);
    throw inProgress("with another body");
  }

  return {
    /**
     * Makes one record, under a key or without one. `run` writes the record unless it is written already, and advances it
     * to its end.
     */
    async create<P extends object, A>(
      call: Call,
      { rpc, requestId, params }: CreateOptions<P>,
      run: (id: number, params: P) => Promise<Resolved<A>>,
    ): Promise<A> {
      const attempt = requestId === undefined ? undefined : attemptOf(call, rpc, requestId, params);
      const claimFor = async (id: number): Promise<Claimed<P>> =>
        attempt ? claimOrJoin(attempt, id, call) : { id, params, isReplay: false };

      const firstId = await records.nextId(call);
      await failpoint("key.id-taken");
      let claimed = await claimFor(firstId);
      for (let round = 0, freshIds = 0; round < MAX_ROUNDS; round++) {
        await failpoint("key.claimed");
        const resolved = await run(claimed.id, claimed.params);
        if (resolved.resolution === "accepted") {
          if (claimed.isReplay) call.responseHeaders.set(REPLAYED_HEADER, "true");
          return resolved.answer;
        }
        if (resolved.resolution === "refused") {
          if (!attempt || (await freeKey(attempt, claimed.id, call))) throw resolved.error;
          claimed = await claimFor(firstId);
          continue;
        }
        if (freshIds++ === MAX_FRESH_IDS) break;
        const id = await records.nextId(call);
        const hour = expiry.period();
        const isOurs = !attempt || (await keys.update(attempt.key, replace(attempt, claimed.id, id, hour), call));
        claimed = isOurs ? { id, params, isReplay: false } : await claimFor(firstId);
      }
      throw unfinished();
    },

    /** Removes at most `limit` keys that have been kept long enough. Resolves to the number removed. */
    removeExpired: (limit: number, callContext: CallContext): Promise<number> =>
      removeExpired(
        expiry,
        {
          list: (hour, most, call) => keys.list({ where: { hour }, limit: most, order: "asc" }, call),
          async remove({ _id }, call) {
            await keys.remove(_id, isExpired, call);
            return true;
          },
        },
        limit,
        callContext,
      ),
  };
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("base64url");

function attemptOf<P extends object>(call: Call, rpc: string, requestId: string, params: P): KeyedAttempt<P> {
  const seen = call.headers.get(SEEN_EPOCH_HEADER);
  return {
    key: sha256(JSON.stringify([call.caller, rpc, requestId])),
    fingerprint: sha256(JSON.stringify(params)),
    params,
    seenEpoch: seen !== null && /^\d{1,16}$/.test(seen) ? Number(seen) : undefined,
  };
}

/**
 * Throws when the attempt began before the key's last refusal. The error carries the current epoch if the caller sends
 * epochs.
 */
function checkFence(attempt: KeyedAttempt<object>, epoch: number, id: number): void {
  if (!isFenced(attempt, epoch, id)) return;
  const metadata = attempt.seenEpoch === undefined ? undefined : { [EPOCH]: String(epoch) };
  throw inProgress("by an attempt that ended meanwhile", metadata);
}

const reused = () =>
  new DomainError("IDEMPOTENCY_KEY_REUSED", "The key already made a record from another body. Use a new key.");
const inProgress = (how: string, metadata?: Record<string, string>) =>
  new DomainError("IDEMPOTENCY_IN_PROGRESS", `The key is in use ${how}. Try again.`, metadata ? { metadata } : {});
const unfinished = () =>
  new DomainError("UNAVAILABLE", "The record could not be finished now. Try again with the same key.");
