/** What must hold of all records: members that follow from the rest, idempotency keys, and the sequence of ids. Pure. */
import { type Decide, type Doc, keep, put } from "@petstore/store/port";
import type { ServiceName } from "../../processes/names.ts";
import { foldedNameOf, type NamedRecord, type NameOf } from "../../services/records/folded-names.ts";
import { tagOf } from "../../services/records/idempotency-keys.ts";
import type { KeyDoc } from "../../services/records/key-transitions.ts";
import { type Finding, finding } from "../findings.ts";
import type { Mending } from "../mending.ts";

/** A record of before there was a search has none until a worker has come to it. */
export const derivedName = <T extends NamedRecord>(doc: T, visible: true | undefined, nameOf: NameOf<T>) =>
  doc.foldedName === undefined ? undefined : foldedNameOf<T>({ ...doc, visible }, nameOf);

/** `derived` makes the members that follow, by which lists and workers find a document; `mend` stores the document with them. */
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

/** A key that has not expired. Its record may still be made, by a client that comes again within the day. */
export function wrongInKey(
  service: ServiceName,
  { _id, recordId, fingerprint }: KeyDoc,
  record: (Doc & { readonly tag?: string | undefined }) | undefined,
): Finding[] {
  if (record?.tag === undefined || record.tag === tagOf(_id + fingerprint)) return [];
  const detail = "The key stands for a record that another request has made.";
  const mend: Finding["mend"] = async ({ keys }) => keys[service]?.remove(_id, () => true);
  return [finding("key-dangling", [`${service}-key/${_id}`, `${service}/${recordId}`], detail, { mend })];
}

export function wrongInSequence(service: ServiceName, last: number, highest: number): Finding[] {
  if (last >= highest) return [];
  return [
    finding(
      "sequence-behind",
      [`sequence/${service}`, `${service}/${highest}`],
      `The next id would be ${last + 1}, and ids up to ${highest} are in use.`,
      { mend: ({ stores }) => stores[service].nextId(service, { above: highest }) },
    ),
  ];
}
