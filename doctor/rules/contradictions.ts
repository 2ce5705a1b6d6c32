/** Members that follow from the rest of a document, and by which lists and workers find it. Pure. */
import { type Decide, type Doc, keep, put } from "@petstore/store/port";
import { foldedNameOf, type NamedRecord, type NameOf } from "../../services/records/folded-names.ts";
import { type Finding, finding } from "../findings.ts";
import type { Mending } from "../mending.ts";

/** A record of before there was a search has none until a worker has come to it. */
export const derivedName = <T extends NamedRecord>(doc: T, visible: true | undefined, nameOf: NameOf<T>) =>
  doc.foldedName === undefined ? undefined : foldedNameOf<T>({ ...doc, visible }, nameOf);

/** `derived` makes the members that follow; `mend` stores the document with them. */
export function contradictions<T extends Doc, D extends Partial<T>>(
  id: string,
  doc: T,
  derived: (doc: T) => D,
  mend: (stores: Mending, mended: Decide<T, void>) => Promise<unknown>,
): Finding[] {
  const right = Object.entries(derived(doc)) as [keyof T & string, unknown][];
  const wrong = right.filter(([name, value]) => doc[name] !== value);
  if (wrong.length === 0) return [];
  const mended: Decide<T, void> = (now) => (now ? put({ ...now, ...derived(now) }, undefined) : keep(undefined));
  const detail = wrong
    .map(([name, value]) => `${name} is ${doc[name] ?? "absent"} instead of ${value ?? "absent"}`)
    .join(", ");
  return [
    finding("corrupt-document", [id], `It contradicts itself: ${detail}.`, { mend: (stores) => mend(stores, mended) }),
  ];
}
