/**
 * Going through all documents of a collection and rewriting those that are not yet as this version writes them, behind the
 * traffic: in batches, each followed by a pause as long as the batch took, which is longer under load.
 */
import type { CallContext } from "@petstore/rpc/call";
import type { Deps } from "./module.ts";

export interface Walk<T> {
  /** The next documents beyond `after`, by ascending ids. */
  list(after: number | undefined, limit: number, callContext: CallContext): Promise<readonly T[]>;
  isOld(doc: T): boolean;
  rewrite(doc: T, callContext: CallContext): Promise<unknown>;
  /** Called behind each batch, with the id of its last document; undefined when it was the last batch. */
  passed(last: number | undefined, callContext: CallContext): Promise<unknown>;
}

export interface WalkOptions {
  /** Documents in a batch. */
  readonly limit: number;
  readonly call: () => CallContext;
  /** Where an earlier walk was cut short. */
  readonly after?: number | undefined;
  /** Most batches. */
  readonly most?: number;
  /** No further batch begins after it. */
  readonly stop?: AbortSignal | undefined;
}

/** Resolves to how many documents were old. */
export async function walk<T extends { readonly _id: number }>(
  { list, isOld, rewrite, passed }: Walk<T>,
  { limit, call, after, most = Number.POSITIVE_INFINITY, stop }: WalkOptions,
  { clock, sleep }: Pick<Deps, "clock" | "sleep">,
): Promise<number> {
  let count = 0;
  let last = after;
  for (let left = most; left > 0 && !stop?.aborted; left--) {
    const begun = clock();
    const callContext = call();
    const docs = await list(last, limit, callContext);
    const old = docs.filter(isOld);
    await Promise.all(old.map((doc) => rewrite(doc, callContext)));
    count += old.length;
    last = docs.length < limit ? undefined : docs.at(-1)?._id;
    await passed(last, callContext);
    if (last === undefined) break;
    // At least a turn of the event loop: the embedded store answers at once. A stop ends it, and the loop.
    if (left > 1) await sleep(clock() - begun, stop).catch(() => {});
  }
  return count;
}
