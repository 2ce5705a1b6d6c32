/**
 * Creating a record, under an idempotency key or without one: one key, one record and one answer, whatever is retried,
 * duplicated or reordered. `docs/reliability.md` explains it.
 *
 * The claim of a key binds it to the body, and the record binds the outcome: a refusal is stored in place of the record before
 * it is answered. So a key holds no contents and no outcome, and whoever finds its record missing makes it, by a body of its
 * own that is the same.
 */
import { createHash } from "node:crypto";
import type { Call, CallContext } from "@petstore/rpc/call";
import type { Collection } from "@petstore/store/port";
import type { ListPage } from "./census.ts";
import { DomainError } from "./errors.ts";
import { createExpiry, removeExpired } from "./expiry.ts";
import { claim, type KEYS, type KeyDoc, renew, replace } from "./key-transitions.ts";
import type { Deps } from "./module.ts";

/** Most ids that one call takes. */
const MAX_IDS = 3;
/** Most times that one call reads its key: it goes on after a change by another attempt. */
const MAX_ROUNDS = 6;
/** Length of a tag: 48 bits. */
const TAG_LENGTH = 8;

/** The response header Idempotent-Replayed, sent with every answer to a key but the first. */
export const REPLAYED_HEADER = "idempotent-replayed";

/** An attempt to make a record. */
export interface Attempt {
  readonly id: number;
  /** Tells attempts with one id apart. All attempts under a key with one body have the same. */
  readonly tag: string;
  readonly isKeyed: boolean;
}

/** How an attempt ended. "abandoned": no record will ever come of the id, and a fresh one above `above` takes its place. */
export type Resolved<A> =
  | { readonly resolution: "accepted"; readonly answer: A }
  | { readonly resolution: "refused"; readonly error: DomainError }
  | { readonly resolution: "abandoned"; readonly above: number | undefined };

export const accepted = <A>(answer: A): Resolved<A> => ({ resolution: "accepted", answer });
export const refused = (error: DomainError): Resolved<never> => ({ resolution: "refused", error });
export const abandoned = (above?: number): Resolved<never> => ({ resolution: "abandoned", above });

export interface Creation<D> {
  readonly rpc: string;
  readonly requestId: string | undefined;
  /** Members in a fixed order, so that equal requests have equal fingerprints. */
  readonly params: object;
  /** Reads what is stored under an id. */
  readonly stored: (id: number) => Promise<D | undefined>;
  /** The highest id that is known to be in use elsewhere, if any. */
  readonly above?: number | undefined;
}

export type Keys = ReturnType<typeof createKeys>;

/** `sequence` gives the ids of the records. */
export function createKeys(
  keys: Collection<KeyDoc, (typeof KEYS)["indexes"]>,
  sequence: string,
  { store, clock, random, failpoint, retention }: Pick<Deps, "store" | "clock" | "random" | "failpoint" | "retention">,
) {
  const { ageMs, periodMs } = retention.keys;
  const validity = createExpiry(retention.keys, clock);
  // Longer than it is answered from, so that no attempt that found it valid finds it removed.
  const expiry = createExpiry({ ageMs: ageMs + periodMs, periodMs }, clock);
  const isExpired = ({ hour }: Pick<KeyDoc, "hour">) => validity.isExpired(hour);
  const isLastHour = ({ hour }: Pick<KeyDoc, "hour">) => validity.isExpired(hour - 1);

  async function nextId(callContext: CallContext, above?: number): Promise<number> {
    const id = await store.nextId(sequence, { ...callContext, above });
    await failpoint("key.id-taken");
    return id;
  }

  async function createWithoutKey<D, A>(
    call: Call,
    creation: Creation<D>,
    run: (attempt: Attempt, stored: D | undefined) => Promise<Resolved<A>>,
  ): Promise<A> {
    const tag = tagOf(String(random()));
    let { above } = creation;
    for (let taken = 0; taken < MAX_IDS; taken++) {
      const resolved = await run({ id: await nextId(call, above), tag, isKeyed: false }, undefined);
      if (resolved.resolution !== "abandoned") return answerOf(resolved);
      above = resolved.above;
    }
    throw unfinished();
  }

  return {
    /** Makes one record. `run` makes it, unless something is stored, and says how that ended. */
    async create<D, A>(
      call: Call,
      creation: Creation<D>,
      run: (attempt: Attempt, stored: D | undefined) => Promise<Resolved<A>>,
    ): Promise<A> {
      if (creation.requestId === undefined) return createWithoutKey(call, creation, run);
      const { rpc, requestId, params, stored } = creation;
      const _id = sha256(JSON.stringify([call.caller, rpc, requestId]));
      const fingerprint = sha256(JSON.stringify(params));
      const tag = tagOf(_id + fingerprint);
      let isFirst = false;
      for (let round = 0, taken = 0; round < MAX_ROUNDS && taken <= MAX_IDS; round++) {
        // A stale read does no harm: each write below judges what is stored, and a record's outcome never changes.
        let key: Omit<KeyDoc, "rev"> | undefined = await keys.get(_id, call);
        // The expiry worker may be late, and the record may be gone: an expired key must not stand for it any more.
        if (key && isExpired(key)) {
          await keys.remove(_id, isExpired, call);
          key = undefined;
        }
        if (!key) {
          const recordId = await nextId(call, creation.above);
          key = await keys.update(_id, claim({ _id, recordId, fingerprint, hour: validity.period() }), call);
          isFirst = key.recordId === recordId;
          if (isExpired(key)) continue;
        }
        await failpoint("key.claimed");
        if (key.fingerprint !== fingerprint) throw reused();
        const { recordId: id } = key;
        const doc = await stored(id);
        // Else the key could expire, and make another record, while this one is being made.
        if (!doc && isLastHour(key) && !(await keys.update(_id, renew(id, validity.period()), call))) continue;
        const resolved = await run({ id, tag, isKeyed: true }, doc);
        if (resolved.resolution !== "abandoned") {
          if (!isFirst) call.responseHeaders.set(REPLAYED_HEADER, "true");
          return answerOf(resolved);
        }
        await keys.update(_id, replace(id, await nextId(call, resolved.above), validity.period()), call);
        taken++;
      }
      throw unfinished();
    },

    /** A page of all keys. */
    list: (page: Parameters<ListPage<KeyDoc>>[0], call: CallContext) => keys.list(page, call),

    /** Removes at most `most` keys that have been kept long enough. Resolves to the number removed. */
    removeExpired: (most: number, call: CallContext): Promise<number> =>
      removeExpired(
        expiry,
        most,
        (hour, limit) => keys.list({ where: { hour }, limit, order: "asc" }, call),
        ({ _id }) => keys.remove(_id, ({ hour }) => expiry.isExpired(hour), call),
      ),
  };
}

function answerOf<A>(resolved: Exclude<Resolved<A>, { resolution: "abandoned" }>): A {
  if (resolved.resolution === "refused") throw resolved.error;
  return resolved.answer;
}

/** A tag; all attempts under a key with one body have that of key and body. */
export const tagOf = (text: string): string => sha256(text).slice(0, TAG_LENGTH);

const sha256 = (text: string): string => createHash("sha256").update(text).digest("base64url");

const reused = () =>
  new DomainError(
    "IDEMPOTENCY_KEY_REUSED",
    "The key was sent with another body before. Use a new key for each create.",
  );
const unfinished = () =>
  new DomainError("UNAVAILABLE", "The record could not be finished now. Try again with the same key, if it had one.");
