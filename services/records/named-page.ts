/**
 * One page of a list that can be asked for by name: then it has the records whose names begin with a text, in the order of
 * (folded name, id). The index of names knows no other filter, so these are judged while reading, and reading has a bound: a
 * page may be short, and more may follow.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallContext } from "@petstore/rpc/call";
import { foldCase } from "./case-folding.ts";
import { DomainError } from "./errors.ts";
import type { NamedRecord, NameSearch, NameStart } from "./folded-names.ts";
import { boundTo, type PageRequest, readPage, readToken, type Source, writeToken } from "./page.ts";

/** Most records that are read for one page. */
const MAX_READ = 1_000;
/** Records that are read at once when the first are too few. */
const MORE = 250;

interface Page<T> {
  readonly docs: T[];
  readonly nextPageToken: string;
}
type After = NonNullable<NameStart["after"]>;

/** `nextPageToken` is empty if no record follows. Throws VALIDATION_FAILED for a name together with another order. */
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
