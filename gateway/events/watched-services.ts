/**
 * The four services that publish changes of their records, which of their RPCs a request needs, and how their events become
 * CloudEvents.
 */

import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type Message,
} from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { parseQuery, splitTarget, type TellUnknown } from "connect-transcoder";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { EventType, EventTypeSchema } from "#proto/petstore/common/v1/watch_pb.ts";
import {
  CategoryCloudEventSchema,
  EventService,
  InventoryCloudEventSchema,
  OrderCloudEventSchema,
  PetCloudEventSchema,
  RecordType,
  type WatchEventsResponse,
} from "#proto/petstore/event/v1/event_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { ServiceName } from "../../processes/names.ts";

/** A message of a service's stream. */
export interface WatchMessage {
  readonly resumeToken: string;
  readonly kind: "event" | "heartbeat" | "synced";
  /** Present if `kind` is "event". */
  readonly event?: WatchEventsResponse["event"];
}

export interface WatchedService {
  readonly name: ServiceName;
  readonly type: RecordType;
  readonly method: DescMethodServerStreaming;
  /** Whether its records belong to a pet, so that a request can select them by pet id. */
  readonly isAboutPets: boolean;
  readonly read: (response: Message, around: Around) => WatchMessage;
}

/** What events depend on besides the service's response. */
export interface Around {
  /** Prefix of the paths of records. */
  readonly basePath: string;
  /** Is told of types that only a newer service knows. */
  readonly tellUnknown?: TellUnknown | undefined;
}

interface Change {
  readonly id: string;
  readonly type: EventType;
  readonly time?: Timestamp | undefined;
  readonly traceparent?: string | undefined;
}

/** The attributes that all events have (CloudEvents 1.0.2, 2.3; `etag` is our extension, `traceparent` a registered one). */
const attributes = (
  name: ServiceName,
  source: string,
  { id, type, time, traceparent }: Change,
  subject: bigint,
  etag: string,
) => ({
  specversion: "1.0",
  id,
  source,
  type: `petstore.${name}.${nameOf(type)}.v1`,
  subject: `${subject}`,
  etag,
  ...(time && { time }),
  ...(traceparent !== undefined && { traceparent }),
});

const names = new Map(
  EventTypeSchema.values.map(({ number, localName }) => [number, localName.toLowerCase()] as const),
);

/** Of a type that only a newer service knows, the number. */
function nameOf(type: EventType): string {
  if (type === EventType.UNSPECIFIED) throw new Error("an event without a type");
  return names.get(type) ?? `${type}`;
}

/** What the streams of the services have in common. */
interface Response extends Message {
  readonly resumeToken: string;
  readonly response:
    | { readonly case: "event"; readonly value: Change & Readonly<Record<string, unknown>> }
    | { readonly case: "heartbeat" | "synced" | undefined };
}

/** `record` and `id`: the field of an event that holds the record, and that of its identifier. */
const watched = (
  name: ServiceName,
  path: string,
  method: DescMethodServerStreaming,
  schema: DescMessage,
  record: string,
  id: "id" | "petId" = "id",
): WatchedService => ({
  name,
  type: RecordType[name.toUpperCase() as keyof typeof RecordType],
  method,
  isAboutPets: name !== "category",
  read(message, { basePath, tellUnknown }) {
    const { resumeToken, response } = message as Response;
    if (response.case !== "event") return { resumeToken, kind: response.case === "synced" ? "synced" : "heartbeat" };
    const { value: change } = response;
    if (!names.has(change.type)) tellUnknown?.(EventTypeSchema, change.type);
    const data = change[record] as { readonly [K in typeof id]?: bigint } & { readonly etag: string };
    if (data === undefined) throw new Error("an event without its record"); // only a faulty service leaves it out
    const shared = attributes(name, basePath + path, change, data[id] ?? 0n, data.etag);
    const value = create(schema, { ...shared, data });
    return { resumeToken, kind: "event", event: { case: name, value } as unknown as WatchEventsResponse["event"] };
  },
});

export const watchedServices: readonly WatchedService[] = [
  watched("pet", "/pets", PetService.method.watchPets, PetCloudEventSchema, "pet"),
  watched("category", "/categories", CategoryService.method.watchCategories, CategoryCloudEventSchema, "category"),
  watched("order", "/store/orders", OrderService.method.watchOrders, OrderCloudEventSchema, "order"),
  watched(
    "inventory",
    "/store/inventory",
    InventoryService.method.watchInventory,
    InventoryCloudEventSchema,
    "item",
    "petId",
  ),
];

/**
 * The services that a request selects: those of its types. Without types it selects all, or with pet ids those about pets.
 */
export const servicesFor = (types: readonly RecordType[], hasPets: boolean): readonly WatchedService[] =>
  watchedServices.filter(({ type, isAboutPets }) =>
    types.length > 0 ? types.includes(type) : isAboutPets || !hasPets,
  );

/**
 * The RPCs whose scopes a request needs: the one that it calls, or for WatchEvents the Watch RPCs of the record types that
 * it asks for. The caller is authorized before the query is validated: a query that can't be read needs the RPCs of all
 * types, and is refused later.
 */
export function neededMethods(target: string, method: DescMethod): readonly [DescMethod, ...DescMethod[]] {
  if (method.parent.typeName !== EventService.typeName) return [method];
  const [first, ...others] = asked(target).map(({ method }) => method);
  return first ? [first, ...others] : [method];
}

function asked(target: string): readonly WatchedService[] {
  const query = parametersOf(target);
  const values = (name: string) => query.filter(([one]) => one === name).flatMap(([, value]) => value.split(","));
  const types = values("types").map((value) => watchedServices.find(({ name }) => name === value)?.type);
  const known = types.filter((type) => type !== undefined);
  return known.length < types.length ? watchedServices : servicesFor(known, values("petId").length > 0);
}

function parametersOf(target: string): readonly (readonly [string, string])[] {
  try {
    return parseQuery(splitTarget(target).query);
  } catch {
    return [];
  }
}
