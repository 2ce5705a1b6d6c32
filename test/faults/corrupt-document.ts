/** Stores what this version of the petstore would not: as a newer one would, or one with a bug. */

import { type Doc, type Indexes, put, schema } from "@petstore/store/port";
import type { ServiceName } from "../../config.ts";
import type { Petstore } from "../harness/petstore.ts";
import { openStoreOf } from "../harness/stores.ts";

/** Each is a change of a record that then can't be read. */
export const corruptDocuments = {
  "an unknown state": { state: "FROZEN" },
  "a value of another type": { version: "1" },
  "a value missing": { version: undefined },
  "a newer format": { format: 3 },
} as const;

/** A schema of any documents. */
export interface Collected {
  readonly name: string;
  readonly indexes: Readonly<Record<string, readonly string[]>>;
}

/** Changes stored documents, while their service is stopped for it. Returns what puts them back as they were. */
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
    // Without the shape, so that everything will do.
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
