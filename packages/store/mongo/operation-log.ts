/**
 * How a process recognises its own write after its answer was lost: each stored document keeps a log of the last operation
 * of each of the last 16 processes that changed it, newest first. A process has one change of a document under way at most,
 * so its entry stands there until its next one, or until 16 others have come after it. The newest entry names the stored
 * state, which the revision does not: that starts at 1 again when a document was removed and comes back.
 */
import { decode, type Fields, type Kind } from "../document/codec.ts";
import { frozen } from "../document/frozen.ts";
import type { Told } from "../document/told.ts";
import { Corrupt, type Doc } from "../port.ts";

const FIELD = "_operations";
const MAX_ENTRIES = 16;

/** A change of one document, whatever the number of attempts to make it. */
export interface Operation {
  /** The process, by a name that no other has or had. */
  readonly by: string;
  readonly number: number;
}

interface Entry extends Operation {
  /** The revision that the operation made. */
  readonly rev: number;
  /** What the operation tells, in the newest entry alone. What is shown of the document itself is not repeated. */
  readonly told?: Omit<Told, "shown"> & Partial<Told>;
}

/** A document with what the port does not show of it. */
export interface Stored<T extends Doc = Doc> {
  readonly doc: T;
  readonly operations: readonly Entry[];
}

/** Frozen. Throws `Corrupt` for bytes that this engine can't have written. */
export function readStored<T extends Doc>(bytes: Uint8Array, kind: Kind): Stored<T> {
  const { [FIELD]: operations, ...doc } = decode<Doc & { readonly [FIELD]?: readonly Entry[] }>(bytes, kind);
  if (!Array.isArray(operations)) {
    throw new Corrupt(`Document ${doc._id} of ${kind.name} was not written by the petstore: restore a backup.`);
  }
  return { doc: frozen(doc as unknown as T), operations };
}

/** What is to be stored when the operation makes `doc` of what was there before, and tells of it. */
export function toStored(
  doc: Doc & Fields,
  before: Stored | undefined,
  { by, number }: Operation,
  news?: Told,
): Fields {
  const others = before?.operations.filter((entry) => entry.by !== by) ?? [];
  const own: Entry = { by, number, rev: doc.rev };
  const told = news && { told: news.type === "deleted" ? news : withoutShown(news) };
  return { ...doc, [FIELD]: [{ ...own, ...told }, ...others.map(withoutTold)].slice(0, MAX_ENTRIES) };
}

const withoutShown = ({ shown: _, ...news }: Told): Omit<Told, "shown"> => news;
const withoutTold = ({ by, number, rev }: Entry): Entry => ({ by, number, rev });

/** Matches what `toStored` has stored with something to tell, as long as it is the document of a change event. */
export const TELLS: Fields = { [`fullDocument.${FIELD}.0.told`]: { $exists: true } };

/** What the last change of the document told. */
export function toldBy<T extends Doc>(
  { doc, operations }: Stored<T>,
  shownOf: (doc: T) => object | undefined,
): Told | undefined {
  const told = operations[0]?.told;
  const shown = told && (told.shown ?? shownOf(doc));
  return shown && { ...told, shown };
}

/** The log in what `toStored` has made. */
export const operationsOf = (fields: Fields) => fields[FIELD] as Stored["operations"];

/** Matches the document as long as it is what was read. */
export const unchanged = ({ doc, operations }: Stored): Fields => ({
  _id: doc._id,
  rev: doc.rev,
  [`${FIELD}.0`]: operations[0] ?? null,
});

/** Whether an operation that was tried on `base` has been made, told by a later read. */
export function outcome(operation: Operation, base: Stored | undefined, now: Stored | undefined) {
  const isOurs = ({ by, number }: Entry) => by === operation.by && number === operation.number;
  if (now?.operations.some(isOurs)) return "made";
  // Not there before and not there now: it was not inserted, for what was just written is not removed (see the port). Nor
  // can the insert still come to harm. On an absent document the operation decides to put once more, and the server refuses an
  // insert that comes after that later write of its session; or its time is over, and it is answered as in doubt.
  if (base === undefined && now === undefined) return "not made";
  if (now === undefined || now.doc.rev < (base?.doc.rev ?? 0)) return "unknown";
  // Had it been made, its entry would be newer than all that are not newer than the base.
  const oldest = now.operations.length < MAX_ENTRIES ? 0 : (now.operations.at(-1)?.rev ?? 0);
  return oldest <= (base?.doc.rev ?? 0) ? "not made" : "unknown";
}
