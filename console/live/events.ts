/** Reads the messages of `GET /events` as records. */
import { type DescMessage, fromJson, type JsonObject, type MessageShape } from "@bufbuild/protobuf";
import { CategorySchema } from "../../packages/client/gen/petstore/category/v1/category_pb.ts";
import { InventoryItemSchema } from "../../packages/client/gen/petstore/inventory/v1/inventory_pb.ts";
import { OrderSchema } from "../../packages/client/gen/petstore/order/v1/order_pb.ts";
import { PetSchema } from "../../packages/client/gen/petstore/pet/v1/pet_pb.ts";
import { statusWord } from "../parts/status.tsx";
import type { Kind, Kinds } from "../records/changes.ts";

/** A CloudEvent about a record. */
export interface LiveEvent<K extends Kind = Kind> {
  /** Identifies the change within its kind. */
  readonly id: string;
  readonly kind: K;
  readonly what: "present" | "created" | "updated" | "deleted";
  readonly time: Date | undefined;
  readonly record: Kinds[K];
}

/** One line of the stream: the id to resume from, and an event or an error. */
export interface Told {
  readonly id?: string;
  readonly event?: LiveEvent;
  readonly error?: { readonly code: string; readonly message: string };
}

const schemas = { pet: PetSchema, category: CategorySchema, order: OrderSchema, inventory: InventoryItemSchema };
const NAME = /^petstore\.(pet|category|order|inventory)\.(present|created|updated|deleted)\.v1$/;

/** Ignores events of unknown kinds, which a newer petstore may send. */
export function readTold(line: unknown): Told {
  const { id, event: name = "", data } = line as { id?: string; event?: string; data?: never };
  const told = id === undefined ? {} : { id };
  if (name === "error") return { ...told, error: data ?? { code: "UNAVAILABLE", message: "" } };
  const [, kind, what] = NAME.exec(name) ?? [];
  if (!kind || !data) return told;
  return { ...told, event: eventOf(kind as Kind, what as LiveEvent["what"], data) };
}

function eventOf(kind: Kind, what: LiveEvent["what"], data: CloudEvent): LiveEvent {
  const record = { ...fromHttpJson(schemas[kind], data.data), etag: data.etag ?? "" } as Kinds[Kind];
  return { id: data.id, kind, what, time: data.time ? new Date(data.time) : undefined, record };
}

interface CloudEvent {
  readonly id: string;
  readonly time?: string;
  readonly etag?: string;
  readonly data: JsonObject;
}

/** In HTTP's JSON, enum values are lower-case words without the prefix of their names; those of a newer service are numbers. */
function fromHttpJson<D extends DescMessage>(desc: D, data: JsonObject): MessageShape<D> {
  const members = Object.entries(data).map(([name, value]) => {
    const prefix = desc.fields.find(({ jsonName }) => jsonName === name)?.enum?.sharedPrefix;
    return [name, prefix === undefined || typeof value === "number" ? value : `${prefix}${value}`.toUpperCase()];
  });
  return fromJson(desc, Object.fromEntries(members), { ignoreUnknownFields: true });
}

/** Describes a record in a few words. */
export const words: { readonly [K in Kind]: (record: Kinds[K]) => string } = {
  pet: ({ id, name, status }) => `Pet ${id} ${name}: ${statusWord(status)}`,
  category: ({ id, name }) => `Category ${id} ${name}`,
  order: ({ id, petId, complete }) =>
    `Order ${id}${petId === undefined ? "" : ` for pet ${petId}`}: ${complete ? "complete" : "open"}`,
  inventory: ({ petId, quantity, status }) => `Stock of pet ${petId}: ${quantity}, ${statusWord(status)}`,
};

export const wordsOf = <K extends Kind>(kind: K, record: Kinds[K]): string => words[kind](record);

/** In characters. Every event of the petstore is shorter. */
const MAX_LINE = 1 << 20;

/** Yields each complete line of JSON (application/x-ndjson), parsed. A last line that is incomplete is dropped. Throws SyntaxError for what is not JSON. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > MAX_LINE) throw new SyntaxError("A line of events has no end.");
    for (const line of parts) if (line !== "") yield JSON.parse(line);
  }
}
