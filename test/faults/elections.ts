/** Watches a replica set, and knows when each primary could be written. */
import { type Document, MongoClient, type ServerDescription } from "mongodb";
import { ask } from "../harness/mongod.ts";

export interface Election {
  /** When it was seen that the primary can be written, on the clock of `performance`. */
  readonly at: number;
  readonly host: string;
  /** When a plain driver was first answered that a majority has a write that it sent there. Undefined if it was not. */
  readonly proven: Promise<number | undefined>;
}

export interface Elections extends AsyncDisposable {
  /** All primaries that were seen, in the order of their elections. */
  readonly seen: readonly Election[];
}

/** The servers tell of a change by themselves, so it is seen within milliseconds. */
export async function watchElections(uri: string): Promise<Elections> {
  const seen: (Election & { readonly id: string })[] = [];
  const client = new MongoClient(uri, { heartbeatFrequencyMS: 500, connectTimeoutMS: 1000 });
  client.on("serverDescriptionChanged", ({ newDescription }: { newDescription: ServerDescription }) => {
    const { type, address, electionId } = newDescription;
    const id = (electionId as Document | null)?.toHexString() ?? "";
    if (type !== "RSPrimary" || id <= (seen.at(-1)?.id ?? "")) return;
    const proven = prove(address).catch(() => undefined);
    seen.push({ at: performance.now(), host: address, id, proven });
  });
  await client.connect();
  return { seen, [Symbol.asyncDispose]: () => client.close() };
}

/** The server may be the primary for seconds before it hears that another member has what it wrote. */
async function prove(host: string): Promise<number> {
  await ask(host, {
    update: "elections",
    updates: [{ q: { _id: 1 }, u: { $inc: { number: 1 } }, upsert: true }],
    writeConcern: { w: "majority", j: true },
  });
  return performance.now();
}
