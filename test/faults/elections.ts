/** Watches a replica set and records when each primary became writable. */
import { type Document, MongoClient, type ServerDescription } from "mongodb";
import { ask } from "../harness/mongod.ts";

export interface Election {
  /** When the primary was seen to be writable, on the clock of `performance`. */
  readonly at: number;
  readonly host: string;
  /** When a write to it was first acknowledged by a majority, sent by a plain driver. Undefined if none was. */
  readonly proven: Promise<number | undefined>;
}

export interface Elections extends AsyncDisposable {
  /** All primaries so far, in the order of their elections. */
  readonly seen: readonly Election[];
}

/** Servers report a change at once, so it is seen within milliseconds. */
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

/** Writes to the server. It may be primary for seconds before it knows that another member has its write. */
async function prove(host: string): Promise<number> {
  await ask(host, {
    update: "elections",
    updates: [{ q: { _id: 1 }, u: { $inc: { number: 1 } }, upsert: true }],
    writeConcern: { w: "majority", j: true },
  });
  return performance.now();
}
