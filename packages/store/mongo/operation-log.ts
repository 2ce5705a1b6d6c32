/**
 * How a process recognises its own write after its answer was lost: each stored document keeps a log of the last
 * operation of each of the last 16 processes that changed it, newest first. A process has at most one change of a
 * document under way, so its entry stays until its next change, or until 16 other processes have changed the document.
 * The newest entry identifies the stored state; the revision does not, because it starts at 1 again when a removed
 * document comes back.
 */
import { decode, type Fields, type Kind } from "../document/codec.ts";
import { frozen, type ShownChange } from "../document/fold.ts";
import { Corrupt, type Doc } from "../port.ts";

export const FIELD = "_operations";
const MAX_ENTRIES = 16;

/** A change of one document, however many attempts it takes. */
export interface Operation {
  /** The process, by a name that no other has or had. */
  readonly by: string;
  readonly number: number;
}

interface Entry extends Operation {
  /** The revision that the operation made. */
  readonly rev: number;
  /** The operation's change event, in the newest entry only, without what is shown of the stored document itself. */
  readonly told?: Omit<ShownChange, "shown"> & Partial<ShownChange>;
}

/** A document with its operation log, which the port does not show. */
export interface Stored<T extends Doc = Doc> {
  readonly doc: T;
  readonly operations: readonly Entry[];
}

/** Frozen. Throws `Corrupt` for bytes that this engine can't have written. */
export function readStored<T extends Doc>(bytes: Uint8Array, kind: Kind): Stored<T> {
  const { [FIELD]: operations, ...doc } = decode<Doc & { readonly [FIELD]?: readonly Entry[] }>(bytes, kind);
  if (!Array.isArray(operations)) {
    const { name } = kind;
    const message = `Document ${doc._id} of ${name} was not written by the petstore: restore a backup.`;
    throw new Corrupt(message, { collection: name });
  }
  return { doc: frozen(doc as unknown as T), operations };
}

/** What is stored when the operation replaces `before` by `doc`, and `news` is its change event. */
export function toStored(
  doc: Doc & Fields,
  before: Stored | undefined,
  { by, number }: Operation,
  news?: ShownChange,
): Fields {
  const others = before?.operations.filter((entry) => entry.by !== by) ?? [];
  const own: Entry = { by, number, rev: doc.rev };
  const told = news && { told: news.type === "deleted" ? news : withoutShown(news) };
  return { ...doc, [FIELD]: [{ ...own, ...told }, ...others.map(withoutTold)].slice(0, MAX_ENTRIES) };
}

const withoutShown = ({ shown: _, ...news }: ShownChange): Omit<ShownChange, "shown"> => news;
const withoutTold = ({ by, number, rev }: Entry): Entry => ({ by, number, rev });

/** Matches, among the events of a change stream, documents whose last operation has a change event, or that are restored. */
export const TELLS: Fields = {
  $or: [
    { [`fullDocument.${FIELD}.0.told`]: { $exists: true } },
    // A restore inserts documents at any revision, whatever their last operation was.
    { operationType: "insert", "fullDocument.rev": { $gt: 1 } },
  ],
};

/** The change event of the document's last change. */
export function toldBy<T extends Doc>(
  { doc, operations }: Stored<T>,
  shownOf: (doc: T) => object | undefined,
): ShownChange | undefined {
  const told = operations[0]?.told;
  const shown = told && (told.shown ?? shownOf(doc));
  return shown && { ...told, shown };
}

export const operationsOf = (fields: Fields) => fields[FIELD] as Stored["operations"];

/** A filter that matches the document while it is still what was read. */
export const unchanged = ({ doc, operations }: Stored): Fields => ({
  _id: doc._id,
  rev: doc.rev,
  // What a restore has written has none. To match null would not do: in an empty array there is nothing to match.
  [`${FIELD}.0`]: operations[0] ?? { $exists: false },
});

/** Whether an operation that was tried on `base` has been made, judged by a later read. */
export function outcome(operation: Operation, base: Stored | undefined, now: Stored | undefined) {
  const isOurs = ({ by, number }: Entry) => by === operation.by && number === operation.number;
  if (now?.operations.some(isOurs)) return "made";
  // Absent before and absent now: the insert was not made, because a document is not removed soon after it was written
  // (see the port). Nor can a late insert do harm: on an absent document the operation decides to put once more, and the
  // server refuses an insert that comes after that later write of its session; or its time is over, and it is answered as
  // in doubt.
  if (base === undefined && now === undefined) return "not made";
  if (now === undefined || now.doc.rev < (base?.doc.rev ?? 0)) return "unknown";
  // If it had been made, its entry would be newer than every entry up to the revision of the base.
  const oldest = now.operations.length < MAX_ENTRIES ? 0 : (now.operations.at(-1)?.rev ?? 0);
  return oldest <= (base?.doc.rev ?? 0) ? "not made" : "unknown";
}
