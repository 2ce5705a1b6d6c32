/** Watchers that resume from their last token whenever their stream ends, and record what they receive. */
import type { CallOptions } from "@connectrpc/connect";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import type { EventType } from "#proto/petstore/common/v1/watch_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { typeName } from "../../services/records/fixtures/watching.ts";
import type { Told, Watch } from "../checker/events.ts";
import { isUnavailable } from "./doors.ts";
import type { Kind } from "./operations.ts";
import type { Shown } from "./perform.ts";
import { type Endpoint, present, shownCategory, shownItem, shownOrder, shownPet } from "./reading.ts";

interface Request {
  readonly resumeToken: string;
  readonly snapshot: boolean;
}

interface Message {
  readonly resumeToken: string;
  readonly told?: Omit<Told, "at"> | { readonly type: "synced" } | undefined;
}

interface Event {
  readonly id: string;
  readonly type: EventType;
}

interface Response {
  readonly resumeToken: string;
  readonly response:
    | { readonly case: "event"; readonly value: Event }
    | { readonly case: "heartbeat" | "synced"; readonly value: unknown }
    | { readonly case: undefined; readonly value?: undefined };
}

type EventOf<R extends Response> = Extract<R["response"], { readonly case: "event" }>["value"];

async function* messages<R extends Response>(
  stream: AsyncIterable<R>,
  shownOf: (event: EventOf<R>) => Shown,
): AsyncGenerator<Message> {
  for await (const { resumeToken, response } of stream) {
    if (response.case === "synced") yield { resumeToken, told: { type: "synced" } };
    else if (response.case !== "event") yield { resumeToken };
    else {
      const { id, type } = response.value;
      const told = { id, type: typeName(type).toLowerCase() as Told["type"], shown: shownOf(response.value) };
      yield { resumeToken, told };
    }
  }
}

type Open = (endpoint: Endpoint, request: Request, options: CallOptions) => AsyncIterable<Message>;
const streams: Record<Kind, Open> = {
  category: (endpoint, ...call) =>
    messages(endpoint.client(CategoryService).watchCategories(...call), ({ category }) =>
      shownCategory(present(category)),
    ),
  pet: (endpoint, ...call) =>
    messages(endpoint.client(PetService).watchPets(...call), ({ pet }) => shownPet(present(pet))),
  order: (endpoint, ...call) =>
    messages(endpoint.client(OrderService).watchOrders(...call), ({ order }) => shownOrder(present(order))),
  inventory: (endpoint, ...call) =>
    messages(endpoint.client(InventoryService).watchInventory(...call), ({ item }) => shownItem(present(item))),
};
export const kinds = Object.keys(streams) as readonly Kind[];

export interface WatcherOptions {
  readonly snapshot?: boolean;
  /** The writes so far. Without it, all writes count as made between the beginning and the events of the watcher. */
  readonly history?: { readonly length: number };
  /** Whether a stream that failed in this way may be resumed. By default, if the service was unavailable. */
  readonly passes?: (error: unknown) => boolean;
  /** Awaited before a stream is resumed. */
  readonly pause: () => Promise<unknown>;
  /** Awaited before the next message is read. */
  readonly digest?: () => Promise<unknown>;
}

export interface Watcher {
  /** What it has received so far. */
  readonly watch: Watch;
  /** Resolves when no later write can be missed. */
  readonly begun: Promise<void>;
  /** The number of streams so far. */
  streams(): number;
  /** Stops the watcher. Rejects if a stream failed with an error that `passes` does not allow. */
  stop(): Promise<void>;
}

export function startWatcher(
  endpoint: Endpoint,
  kind: Kind,
  { snapshot = false, history, passes = isUnavailable, pause, digest = async () => {} }: WatcherOptions,
): Watcher {
  const told: Watch["told"][number][] = [];
  const stop = new AbortController();
  const begun = Promise.withResolvers<void>();
  let since = Number.POSITIVE_INFINITY;
  let resumeToken = "";
  let opened = 0;

  async function follow(): Promise<void> {
    opened++;
    for await (const message of streams[kind](endpoint, { resumeToken, snapshot }, { signal: stop.signal })) {
      if (resumeToken === "") since = history?.length ?? 0;
      begun.resolve();
      resumeToken = message.resumeToken;
      if (message.told) told.push({ ...message.told, at: history?.length ?? Number.POSITIVE_INFINITY });
      await digest();
    }
  }
  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      await follow().catch((error: unknown) => {
        if (!stop.signal.aborted && !passes(error)) throw error;
      });
      await pause();
    }
  }
  const running = run();
  running.catch(begun.reject);
  begun.promise.catch(() => {});

  return {
    watch: {
      kind,
      snapshot,
      get since() {
        return since;
      },
      told,
    },
    begun: begun.promise,
    streams: () => opened,
    async stop() {
      stop.abort();
      await running;
    },
  };
}
