/** The four services that publish changes of their records, and how their events become CloudEvents. */

import { create, type DescMethodServerStreaming, type Message } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { TellUnknown } from "connect-transcoder";
import { CategoryService, type WatchCategoriesResponse } from "#proto/petstore/category/v1/category_service_pb.ts";
import { EventType, EventTypeSchema } from "#proto/petstore/common/v1/watch_pb.ts";
import {
  CategoryCloudEventSchema,
  InventoryCloudEventSchema,
  OrderCloudEventSchema,
  PetCloudEventSchema,
  RecordType,
  type WatchEventsResponse,
} from "#proto/petstore/event/v1/event_service_pb.ts";
import { InventoryService, type WatchInventoryResponse } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService, type WatchOrdersResponse } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService, type WatchPetsResponse } from "#proto/petstore/pet/v1/pet_service_pb.ts";
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

type Response = WatchPetsResponse | WatchCategoriesResponse | WatchOrdersResponse | WatchInventoryResponse;
type Event<R extends Response> = Extract<R["response"], { case: "event" }>["value"];

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

/** The record of an event. Only a faulty service leaves it out; then this throws. */
function present<T>(record: T | undefined): T {
  if (record === undefined) throw new Error("an event without its record");
  return record;
}

/** `eventOf` gets `path` behind the base path, as the event's source. */
const reading =
  <R extends Response>(path: string, eventOf: (event: Event<R>, source: string) => WatchEventsResponse["event"]) =>
  (message: Message, { basePath, tellUnknown }: Around): WatchMessage => {
    const { resumeToken, response } = message as R;
    if (response.case === "event") {
      const { type } = response.value;
      if (!names.has(type)) tellUnknown?.(EventTypeSchema, type);
      return { resumeToken, kind: "event", event: eventOf(response.value as Event<R>, basePath + path) };
    }
    return { resumeToken, kind: response.case === "synced" ? "synced" : "heartbeat" };
  };

export const watchedServices: readonly WatchedService[] = [
  {
    name: "pet",
    type: RecordType.PET,
    method: PetService.method.watchPets,
    isAboutPets: true,
    read: reading<WatchPetsResponse>("/pets", (event, source) => {
      const data = present(event.pet);
      const value = create(PetCloudEventSchema, { ...attributes("pet", source, event, data.id, data.etag), data });
      return { case: "pet", value };
    }),
  },
  {
    name: "category",
    type: RecordType.CATEGORY,
    method: CategoryService.method.watchCategories,
    isAboutPets: false,
    read: reading<WatchCategoriesResponse>("/categories", (event, source) => {
      const data = present(event.category);
      const shared = attributes("category", source, event, data.id, data.etag);
      return { case: "category", value: create(CategoryCloudEventSchema, { ...shared, data }) };
    }),
  },
  {
    name: "order",
    type: RecordType.ORDER,
    method: OrderService.method.watchOrders,
    isAboutPets: true,
    read: reading<WatchOrdersResponse>("/store/orders", (event, source) => {
      const data = present(event.order);
      const shared = attributes("order", source, event, data.id ?? 0n, data.etag);
      return { case: "order", value: create(OrderCloudEventSchema, { ...shared, data }) };
    }),
  },
  {
    name: "inventory",
    type: RecordType.INVENTORY,
    method: InventoryService.method.watchInventory,
    isAboutPets: true,
    read: reading<WatchInventoryResponse>("/store/inventory", (event, source) => {
      const data = present(event.item);
      const shared = attributes("inventory", source, event, data.petId, data.etag);
      return { case: "inventory", value: create(InventoryCloudEventSchema, { ...shared, data }) };
    }),
  },
];

/**
 * The services that a request selects: those of its types. Without types it selects all, or with pet ids those about pets.
 */
export const servicesFor = (types: readonly RecordType[], hasPets: boolean): readonly WatchedService[] =>
  watchedServices.filter(({ type, isAboutPets }) =>
    types.length > 0 ? types.includes(type) : isAboutPets || !hasPets,
  );
