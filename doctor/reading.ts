/** Reads collections to their end: in pages, so that the memory is bounded however much is stored, and each list once. */

import { Corrupt, type Doc, type Id } from "@petstore/store/port";
import type { Inspection, Kind, Row } from "@petstore/store/rows";
import type { ServiceName } from "../processes/names.ts";
import type { OnProgress } from "../processes/progress.ts";
import { asStored, type Formatted, toNewest } from "../services/records/formats.ts";
import { byItself, type Finding, type Findings, finding } from "./findings.ts";

/** Documents that are read at once. */
const PAGE = 500;

/** Stands for a document that can't be read. What other documents say of it can't be judged. */
export const UNREADABLE = "unreadable";
export type Read<T> = T | typeof UNREADABLE;
export const isRead = <T>(doc: Read<T> | undefined): doc is T => doc !== undefined && doc !== UNREADABLE;

export interface Item<T> {
  readonly _id: Id;
  readonly doc: Read<T>;
}

export interface Source<T> {
  readonly service: ServiceName;
  readonly from: Pick<Inspection, "page" | "many" | "read">;
  readonly kind: Kind<T>;
  /** What the ids of its documents begin with, such as "pet" of "pet/7". */
  readonly name: string;
}

/** All documents in the order of `_id`. Those that can't be read, and those that lists would not find, are findings. */
export async function* list<T extends Doc>(
  { service, from, kind, name }: Source<T>,
  found: Findings,
  progress: OnProgress,
): AsyncGenerator<Item<T>> {
  let count = 0;
  for (let after: Id | undefined; ; ) {
    const rows = await from.page(kind.name, PAGE, after);
    for (const row of rows) {
      const [doc, problem, stored] = read(from, row, kind);
      if (problem !== undefined) found.add([finding("corrupt-document", [`${name}/${row._id}`], problem)]);
      if (stored) found.add(misplaced(`${name}/${row._id}`, row, stored, kind, service));
      yield { _id: row._id, doc };
    }
    after = rows.at(-1)?._id;
    count += rows.length;
    if (after === undefined) return;
    progress(`${count.toLocaleString("en")} of ${name}, up to ${name}/${after}`);
  }
}

/** The documents with these ids that are there. */
export async function many<T extends Doc>({ from, kind }: Source<T>, ids: Iterable<Id>): Promise<Map<Id, Read<T>>> {
  const rows = await from.many(kind.name, [...new Set(ids)]);
  return new Map(rows.map((row) => [row._id, read(from, row, kind)[0]]));
}

/** Reads a document of any format that this version knows: it as one of the newest, and it as it is stored. */
function read<T extends Doc>(
  from: Pick<Inspection, "read">,
  row: Row,
  kind: Kind<T> & Formatted,
): [Read<T>, string?, T?] {
  try {
    const stored = from.read(row, asStored(kind));
    return [toNewest(kind)(stored), undefined, stored];
  } catch (error) {
    if (error instanceof Corrupt) return [UNREADABLE, error.message];
    throw error;
  }
}

/** Whether the engine has all the fields of a document beside it by which lists find it. */
function misplaced<T extends Doc>(
  id: string,
  { indexed }: Row,
  doc: T,
  { indexes }: Kind<T>,
  of: ServiceName,
): Finding[] {
  if (!indexed) return [];
  const fields = new Set(Object.values(indexes).flat());
  const wrong = [...fields].filter((field) => indexed[field] !== doc[field as keyof T]);
  if (wrong.length === 0) return [];
  const detail = `Lists by ${wrong.join(", ")} don't find it, or find it where it is not.`;
  return [finding("index-missing", [id], detail, { mend: byItself, of })];
}

/** Two lists side by side: what has the same id comes together. */
export async function* joined<A, B>(
  left: AsyncGenerator<Item<A>>,
  right: AsyncGenerator<Item<B>>,
): AsyncGenerator<readonly [Id, Read<A> | undefined, Read<B> | undefined]> {
  const next = async <T>(items: AsyncGenerator<Item<T>>) => (await items.next()).value as Item<T> | undefined;
  let [a, b] = [await next(left), await next(right)];
  while (a || b) {
    const order = !a ? 1 : !b ? -1 : compareIds(a._id, b._id);
    const _id = (order <= 0 ? a : b)?._id as Id;
    yield [_id, order <= 0 ? a?.doc : undefined, order >= 0 ? b?.doc : undefined];
    if (order <= 0) a = await next(left);
    if (order >= 0) b = await next(right);
  }
}

/** All records are numbered. What has another id by accident comes last, in any order. */
function compareIds(a: Id, b: Id): number {
  if (typeof a === "number") return typeof b === "number" ? a - b : -1;
  return typeof b === "number" ? 1 : a === b ? 0 : -1;
}

/** Items in batches, so that what belongs to them can be read at once. */
export async function* batches<T>(items: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < PAGE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
