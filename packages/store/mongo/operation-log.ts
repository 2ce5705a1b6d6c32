/**
 * How a process recognises its own write after its answer was lost: each stored document keeps the last change of each of
 * the last 16 processes that changed it, newest first. A process has one change of a document under way at most, so its
 * mark stands there until its next one, or until 16 others have come after it. The newest mark names the stored state,
 * which the revision does not: that starts at 1 again when a document was removed and comes back.
 */
import { decode, type Fields, type Kind } from "../document/codec.ts";
import { Corrupt, type Doc } from "../port.ts";

const FIELD = "_marks";
const PROCESSES = 16;

/** A change of one document. All attempts to make it have the same mark. */
export interface Change {
  /** The process, by a name that no other has or had. */
  readonly by: string;
  readonly number: number;
}

interface Mark extends Change {
  /** The revision that the change made. */
  readonly rev: number;
}

/** A document with what the port does not show of it. */
export interface Stored<T extends Doc = Doc> {
  readonly doc: T;
  readonly marks: readonly Mark[];
}

/** Throws `Corrupt` for bytes that this engine can't have written. */
export function readStored<T extends Doc>(bytes: Uint8Array, kind: Kind): Stored<T> {
  const { [FIELD]: marks, ...doc } = decode<Doc & { readonly [FIELD]?: readonly Mark[] }>(bytes, kind);
  if (!Array.isArray(marks)) {
    throw new Corrupt(`Document ${doc._id} of ${kind.name} was not written by the petstore: restore a backup.`);
  }
  return { doc: doc as unknown as T, marks };
}

/** What is to be stored when `change` makes `doc` of what was there before. */
export function toStored(doc: Doc & Fields, before: Stored | undefined, { by, number }: Change): Fields {
  const others = before?.marks.filter((mark) => mark.by !== by) ?? [];
  return { ...doc, [FIELD]: [{ by, number, rev: doc.rev }, ...others].slice(0, PROCESSES) };
}

/** Matches the document as long as it is what was read. */
export const unchanged = ({ doc, marks }: Stored): Fields => ({
  _id: doc._id,
  rev: doc.rev,
  [`${FIELD}.0`]: marks[0] ?? null,
});

/** Whether a change that was tried on `base` has been made, told by a later read. */
export function outcome(change: Change, base: Stored | undefined, now: Stored | undefined) {
  const isOurs = ({ by, number }: Mark) => by === change.by && number === change.number;
  if (now?.marks.some(isOurs)) return "made";
  // Not there before and not there now: it was not inserted, for what was just written is not removed (see the port). Nor
  // can the insert still come to harm. On an absent document the change decides to put once more, and the server refuses an
  // insert that comes after that later write of its session; or its time is over, and it is answered as in doubt.
  if (base === undefined && now === undefined) return "not made";
  if (now === undefined || now.doc.rev < (base?.doc.rev ?? 0)) return "unknown";
  // Had it been made, its mark would be newer than all that are not newer than the base.
  const oldest = now.marks.length < PROCESSES ? 0 : (now.marks.at(-1)?.rev ?? 0);
  return oldest <= (base?.doc.rev ?? 0) ? "not made" : "unknown";
}
