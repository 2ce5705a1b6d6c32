/** One page of a list (AIP-158). It starts after the last id of the page before, so a deep page costs as much as the first. */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { max_page_size } from "#proto/petstore/common/v1/lists_pb.ts";
import { DomainError } from "./errors.ts";
import type { FinishOnRead } from "./finish-on-read.ts";
import { type StoredRecord, storedIds } from "./record.ts";

export interface PageRequest {
  readonly limit?: number | undefined;
  readonly pageToken: string;
  /** A field name, with "-" in front for descending order, which is the default. */
  readonly orderBy?: string | undefined;
}

/** Where a page begins, and how far it goes. */
export interface PageStart {
  readonly after: number | undefined;
  readonly limit: number;
  readonly order: "asc" | "desc";
}

/** The most records on one page of a list, as declared by its request message. */
export function maxPageSize(request: DescMessage & { readonly field: { readonly limit: DescField } }): number {
  return getOption(request.field.limit, max_page_size);
}

/** The records that match the filters of a list, whichever page is read. */
export interface Source<T> {
  /** Most records on one page. */
  readonly maxSize: number;
  /** Everything that the caller filters by, so that a token can be bound to it. */
  readonly filter: readonly unknown[];
  /** Only records with these ids; empty means all. */
  readonly ids: readonly bigint[];
  readonly getMany: (ids: readonly number[]) => Promise<T[]>;
  /** Reads by index the records that match all filters but `ids`. */
  readonly list: (start: PageStart) => Promise<T[]>;
  /** Whether a record matches all filters but `ids`. */
  readonly matches: (doc: T) => boolean;
  /** Finishes deletions under way. Absent if none has to be finished. */
  readonly finish?: FinishOnRead<T>;
}

/** Reads one page. `nextPageToken` is empty unless another record follows. */
export async function readPage<T extends StoredRecord>(
  { limit, pageToken, orderBy }: PageRequest,
  source: Source<T>,
): Promise<{ docs: T[]; nextPageToken: string }> {
  const size = Math.min(limit ?? source.maxSize, source.maxSize);
  const order = orderBy && !orderBy.startsWith("-") ? "asc" : "desc";
  const bound = boundTo(source, order);
  const after = pageToken === "" ? undefined : readToken(pageToken, bound, (key) => key === undefined)._id;
  const { docs, hasMore } = await readAfter({ after, limit: size, order }, source);
  const last = docs.at(-1);
  return { docs, nextPageToken: last && hasMore ? writeToken({ _id: last._id }, bound) : "" };
}

/** Reads the records after an id, and whether more follow. */
export async function readAfter<T extends StoredRecord>(
  { after, limit, order }: PageStart,
  { ids, getMany, list, matches, finish }: Source<T>,
): Promise<{ docs: T[]; hasMore: boolean }> {
  const found: T[] = [];
  const take = (docs: readonly T[]) => found.push(...docs.filter(matches));
  if (ids.length > 0) {
    const docs = await getMany(beyond(ids, order, after));
    take(finish ? await finish.asked(docs) : docs);
  }
  for (let from = after, more = ids.length === 0; more; ) {
    const wanted = limit + 1 - found.length;
    const docs = await list({ after: from, limit: wanted, order });
    take(finish ? await finish.listed(docs) : docs);
    // Some of these may be gone or undecided: the next records fill the page.
    from = docs.at(-1)?._id;
    more = docs.length === wanted && found.length <= limit;
    if (more) await nextTurn(); // many records may be left out, and the embedded store answers at once
  }
  return { docs: found.slice(0, limit), hasMore: found.length > limit };
}

/** A fingerprint of the filters and the order of a list: a token of one list is not valid for another. */
export const boundTo = (
  { ids, filter }: Pick<Source<never>, "ids" | "filter">,
  order: "asc" | "desc" | "name",
): string => fingerprint([order, ids.map(String).sort(), ...filter]);

function beyond(ids: readonly bigint[], order: "asc" | "desc", after: number | undefined): number[] {
  const sorted = [...new Set(storedIds(ids))].sort((a, b) => (order === "asc" ? a - b : b - a));
  return after === undefined ? sorted : sorted.filter((id) => (order === "asc" ? id > after : id < after));
}

const fingerprint = (value: unknown): string => {
  const text = JSON.stringify(value, (_, member) => (typeof member === "bigint" ? String(member) : member));
  return createHash("sha256").update(text).digest("base64url").slice(0, 12);
};

/** Where a page ends: the last record, and what the list is ordered by if that is not the id. */
export interface PageEnd {
  readonly _id: number;
  readonly key?: string | undefined;
}

export const writeToken = ({ _id, key }: PageEnd, bound: string): string =>
  Buffer.from([_id, bound, ...(key === undefined ? [] : [key])].join(".")).toString("base64url");

/** `fits`: whether a key can be one of this list. */
export function readToken(token: string, bound: string, fits: (key: string | undefined) => boolean): PageEnd {
  const text = Buffer.from(token, "base64url").toString();
  const [, after, given, key] = /^([1-9]\d{0,15})\.([\w-]{12})(?:\.(.+))?$/s.exec(text) ?? [];
  const end = { _id: Number(after), key };
  const isWhole = Number.isSafeInteger(end._id) && writeToken(end, bound) === token;
  if (given === bound && isWhole && fits(key)) return end;
  throw new DomainError(
    "INVALID_PAGE_TOKEN",
    given && given !== bound
      ? "The token belongs to a list with other filters or another order. Start again without it."
      : "This is not a token that the list gave out. Start again without it.",
    { path: "page_token" },
  );
}
