/** Watches all kinds of records by one connection: `GET /events`, as lines of JSON. */
import type { Calls } from "./calls.ts";
import { PetstoreError, toldIn } from "./errors.ts";
import type { Category, InventoryItem, Order, Pet } from "./records.ts";
import { chunksOf, type GatewayOptions } from "./transport.ts";
import {
  type Change,
  isEventType,
  type Present,
  type Resumable,
  resumed,
  type SnapshotMark,
  type StreamItem,
  type WatchOptions,
} from "./watch.ts";

export interface RecordTypes {
  readonly pet: Pet;
  readonly category: Category;
  readonly order: Order;
  readonly inventory: InventoryItem;
}

export type RecordType = keyof RecordTypes;

type Of<R> = { readonly recordType: R };

export interface StoreFilter<R extends RecordType> {
  /** Only these. Without it all; with `petId` all but categories, which belong to no pet. */
  readonly types?: readonly R[] | undefined;
  /** Only these pets, orders for them and their stock. */
  readonly petId?: number | readonly number[] | undefined;
  readonly resumeToken?: string | undefined;
}

/** What happened to a record. */
export type StoreEvent<R extends RecordType = RecordType> = { [K in R]: Change<RecordTypes[K]> & Of<K> }[R];

/** What happens in the store. It is watched and resumed as the records of one kind are. */
export type WatchStore = <R extends RecordType = RecordType, S extends boolean = false>(
  filter?: StoreFilter<R> & { readonly snapshot?: S | undefined },
  options?: WatchOptions,
) => AsyncGenerator<
  StoreEvent<R> | (S extends true ? { [K in R]: Present<RecordTypes[K]> & Of<K> }[R] | SnapshotMark : never)
>;

const LINES = "application/x-ndjson";

export function watchStore(
  { baseUrl, fetch }: Partial<Pick<GatewayOptions, "baseUrl" | "fetch">>,
  calls: Calls,
): WatchStore {
  async function* open(filter: StoreFilter<RecordType> & Resumable, lastEventId: string, options: WatchOptions) {
    if (baseUrl === undefined) throw new PetstoreError("NOT_SENT", "watch() goes to a gateway: it needs a baseUrl.");
    const { types, petId, snapshot } = filter;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries({ types, petId, snapshot, lastEventId })) {
      const text = `${value ?? ""}`; // of an empty list, too
      if (text !== "") query.set(name, text);
    }
    const headers = await calls.headers(options.headers, options.signal);
    headers.set("Accept", LINES);
    const url = `${baseUrl.replace(/\/$/, "")}/events?${query}`;
    const response = await (fetch ?? globalThis.fetch)(url, { headers, signal: options.signal ?? null });
    if (!response.ok) throw await refusal(response);
    const type = response.headers.get("content-type");
    if (!response.body || !type?.startsWith(LINES))
      throw nobody(`${response.status} with ${type ?? "no content type"}`);
    for await (const line of readLines(response.body)) yield itemOf(line as Line);
  }
  const watch = (filter: StoreFilter<RecordType> & Resumable = {}, options: WatchOptions = {}) =>
    resumed("events", (token, signal) => open(filter, token, { ...options, signal }), filter, options, calls);
  // The type of what it yields follows from the filter, which TypeScript can't tell here.
  return watch as WatchStore;
}

const nobody = (answer: string) => new PetstoreError("UNREACHABLE", `no petstore answers: ${answer}`);

async function refusal(response: Response): Promise<PetstoreError> {
  const record = (await response.json().catch(() => undefined)) as Refusal | undefined;
  if (typeof record?.code !== "string") return nobody(`${response.status}`);
  return new PetstoreError(record.code, record.message, { status: record.status, ...toldIn(response.headers) });
}

type Refusal = { readonly code: string; readonly message: string; readonly status: number };
type Line = { readonly id: string; readonly event?: string; readonly data?: Refusal & CloudEvent };

function itemOf({ id, event = "", data }: Line): StreamItem {
  if (event === "error" && data) throw new PetstoreError(data.code, data.message, { status: data.status });
  const [, recordType = "", type] = event.split(".");
  if (recordType === "synced") return { resumeToken: id, event: { type: "synced" } };
  if (!data || !isEventType(type)) return { resumeToken: id };
  const { time } = data;
  return { resumeToken: id, event: { recordType, type, id: data.id, ...(time && { time }), record: recordIn(data) } };
}

/** In characters. Every event of the petstore is shorter. */
const MAX_LINE = 1 << 20;

/**
 * Reads what `GET /events` sends as lines of JSON (application/x-ndjson): yields each complete line, parsed. A last line that is
 * incomplete is dropped.
 * @throws SyntaxError for what is not JSON.
 */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunksOf(body)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE) throw new SyntaxError("A line of events has no end.");
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}

/** What a line says of a record. */
interface CloudEvent {
  readonly id: string;
  readonly time?: string;
  readonly etag?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The record as callers have it. A status that only a later version knows is a number there, and text here. */
const recordIn = ({ data, etag = "" }: CloudEvent): object => ({
  ...data,
  ...("status" in data && { status: `${data.status}` }),
  etag,
});
