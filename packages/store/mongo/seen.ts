/**
 * What a process has seen of a database, as a text for other processes that read the same one: the time of the latest
 * operation, and the signed time of the cluster, by which a server believes that there was such an operation. Both are what
 * causally consistent sessions have to tell one another:
 * https://www.mongodb.com/docs/manual/core/read-isolation-consistency-recency/#causal-consistency
 */
import { createHash } from "node:crypto";
import { deserialize, serialize } from "bson";
import { type ClusterTime, type MongoClient, Timestamp } from "mongodb";

export interface Times {
  readonly operationTime: Timestamp;
  readonly clusterTime?: ClusterTime | undefined;
}

/** A name for the servers of a connection string, the same in each process that names the same ones. */
export const nameOf = ({ srvHost, hosts }: MongoClient["options"]): string =>
  createHash("sha256")
    .update(srvHost ?? hosts.map(String).sort().join())
    .digest("base64url")
    .slice(0, 8);

const hex = (value: number) => value.toString(16).padStart(8, "0");
const TIMES = /^([0-9a-f]{8})([0-9a-f]{8})([\w-]*)$/;

/** Of two texts about the same data the greater one is the later. */
export function writeSeen(data: string, { operationTime, clusterTime }: Times): string {
  const signed = clusterTime ? Buffer.from(serialize(clusterTime)).toString("base64url") : "";
  return `${data}:${hex(operationTime.getHighBitsUnsigned())}${hex(operationTime.getLowBitsUnsigned())}${signed}`;
}

/** Of several texts with spaces between, reads the one about these data. Undefined if there is none. */
export function readSeen(data: string, texts: string): Times | undefined {
  const text = texts.split(" ").find((one) => one.startsWith(`${data}:`));
  const [, high = "", low = "", signed = ""] = TIMES.exec(text?.slice(data.length + 1) ?? "") ?? [];
  if (low === "") return undefined;
  const operationTime = new Timestamp({ t: Number.parseInt(high, 16), i: Number.parseInt(low, 16) });
  if (signed === "") return { operationTime };
  const clusterTime = deserialize(Buffer.from(signed, "base64url"), { promoteLongs: false }) as ClusterTime;
  return { operationTime, clusterTime };
}
