/** Stores documents that this version of the petstore would not, but a newer or a faulty one might. */

import { type Doc, type Indexes, put, schema } from "@petstore/store/port";
import type { ServiceName } from "../../processes/names.ts";
import type { Petstore } from "../harness/petstore.ts";
import { openStoreOf } from "../harness/stores.ts";

/** Changes of a record, each of which makes it unreadable. */
export const corruptDocuments = {
  "an unknown state": { state: "FROZEN" },
  "a value of another type": { version: "1" },
  "a value missing": { version: undefined },
  "a newer format": { format: 3 },
} as const;

/** The name and indexes of a collection, without its schema. */
export interface Collected {
  readonly name: string;
  readonly indexes: Readonly<Record<string, readonly string[]>>;
}

/** Changes stored documents while their service is stopped. Returns a function that restores them. */
export async function spoil(
  petstore: Petstore,
  service: ServiceName,
  { name, indexes }: Collected,
  changes: ReadonlyMap<number, object>,
): Promise<() => Promise<void>> {
  const before = new Map<number, Doc>();
  const store = async (change: (id: number, stored: Doc | undefined) => Doc) => {
    await petstore.kill(service, "SIGTERM");
    const opened = await openStoreOf(petstore, service);
    // Without the validation of documents, so that anything can be stored.
    const docs = await opened.collection(schema<Doc>()(name, indexes as Indexes<Doc>));
    for (const id of changes.keys()) await docs.update(id, (stored) => put(change(id, stored), undefined));
    await opened.close();
    await petstore.start(service);
  };
  await store((id, stored) => {
    if (!stored) throw new Error(`There is no document ${id} of ${name}.`);
    before.set(id, stored);
    return { ...stored, ...changes.get(id) };
  });
  return () => store((id) => before.get(id) as Doc);
}
