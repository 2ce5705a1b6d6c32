/** One page of a list (AIP-158). It starts after the last id of the page before, so a deep page costs as much as the first. */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import type { CallContext } from "@petstore/rpc/call";
import { max_page_size } from "#proto/petstore/common/v1/lists_pb.ts";
import { DomainError } from "./errors.ts";
import type { FinishOnRead } from "./finish-on-read.ts";
import { foldCase, type NamedRecord, type NameSearch, type NameStart } from "./folded-names.ts";
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

interface Page<T> {
  readonly docs: T[];
  /** Empty unless another record follows. */
  readonly nextPageToken: string;
}

/** Reads one page. */
export async function readPage<T extends StoredRecord>(
  { limit, pageToken, orderBy }: PageRequest,
  source: Source<T>,
): Promise<Page<T>> {
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
interface PageEnd {
  readonly _id: number;
  readonly key?: string | undefined;
}

const writeToken = ({ _id, key }: PageEnd, bound: string): string =>
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

/** Most records that are read for one page by name. */
const MAX_READ = 1_000;
/** Records that are read at once when the first are too few. */
const MORE = 250;

type After = NonNullable<NameStart["after"]>;

/**
 * One page of a list that can be asked for by name: then it has the records whose names begin with a text, in the order of
 * (folded name, id). The index of names knows no other filter, so these are judged while reading, and reading has a bound: a
 * page may be short, and more may follow. Throws VALIDATION_FAILED for a name together with another order.
 */
export async function readNamedPage<T extends NamedRecord>(
  { name, ...request }: PageRequest & { readonly name?: string | undefined },
  source: Source<T>,
  names: Pick<NameSearch<T>, "list">,
  callContext: CallContext,
): Promise<Page<T>> {
  if (name === undefined) return readPage(request, source);
  if (request.orderBy !== undefined) {
    const message = "can't be given together with name: what is found by name comes in the order of names";
    throw new DomainError("VALIDATION_FAILED", message, { path: "order_by" });
  }
  const { maxSize, filter, ids, matches, finish } = source;
  const prefix = foldCase(name);
  const bound = boundTo({ ids, filter: [...filter, prefix] }, "name");
  const size = Math.min(request.limit ?? maxSize, maxSize);
  const begins = (key: string | undefined) => key?.startsWith(prefix) === true;
  const wanted = new Set(ids.map(Number));
  const isWanted = (doc: T) => matches(doc) && begins(doc.foldedName) && (ids.length === 0 || wanted.has(doc._id));

  const found: { readonly doc: T; readonly after: After }[] = [];
  let after = request.pageToken === "" ? undefined : (readToken(request.pageToken, bound, begins) as After);
  let [read, more] = [0, true];
  while (more && found.length <= size && read < MAX_READ) {
    if (read > 0) await nextTurn(); // the embedded store answers at once
    const limit = read === 0 ? size + 1 : Math.min(MORE, MAX_READ - read);
    const docs = await names.list({ prefix, after, limit }, callContext);
    // Where the list has them: a record whose deletion is finished now may have another name.
    const ends = new Map(docs.map(({ _id, foldedName = "" }) => [_id, { _id, key: foldedName }]));
    const matching = docs.filter(isWanted);
    for (const doc of finish ? (await finish.listed(matching)).filter(isWanted) : matching)
      found.push({ doc, after: ends.get(doc._id) as After });
    after = [...ends.values()].at(-1);
    read += docs.length;
    more = docs.length === limit;
  }
  const page = found.slice(0, size);
  const end = found.length > size ? page.at(-1)?.after : more ? after : undefined;
  return { docs: page.map(({ doc }) => doc), nextPageToken: end ? writeToken(end, bound) : "" };
}
