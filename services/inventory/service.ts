import type { Client } from "@connectrpc/connect";
import type { Budget } from "@petstore/rpc/call";
import { implement } from "@petstore/rpc/server/handlers";
import type { Decide } from "@petstore/store/port";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { OrderInternalService } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import type { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { createExpiry, removeTombstones, withExpiry } from "../resource/expiry.ts";
import type { ServiceModule } from "../resource/module.ts";
import { readPage } from "../resource/page.ts";
import { fromPetStatus, storedId, toPetStatus } from "../resource/record.ts";
import { removing } from "../resource/recovery-worker.ts";
import { INVENTORY, type InventoryDoc, isTombstone, said, toInventoryItem } from "./model.ts";
import { createRelay } from "./outbox-publisher.ts";
import { createReconciler } from "./reconciler.ts";
import {
  commit,
  type Ended,
  inventoryNotFound,
  isOpen,
  open,
  refusalOf,
  release,
  reserve,
  retire,
  setListing,
  update,
} from "./rules.ts";

export interface Peers {
  readonly pets: Client<typeof PetInternalService>;
  readonly orders: Client<typeof OrderInternalService>;
}

export async function createInventoryService(deps: Deps, { pets, orders }: Peers): Promise<ServiceModule> {
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const entries = withExpiry(await deps.store.collection(INVENTORY), isTombstone, expiry);
  const relay = createRelay({ ...deps, entries, pets });

  /** Changes an entry. If that is news for the pet, the pet is told without keeping the answer waiting. */
  async function change<R extends Pick<Ended, "entry">>(
    id: number,
    decide: Decide<InventoryDoc, R>,
    done: `inventory.${string}`,
    budget: Budget,
  ): Promise<R> {
    const ended = await entries.update(id, decide, budget);
    await deps.point(done);
    if (ended.entry?.dirty) relay.kick(id);
    return ended;
  }

  const releaseOrder = (id: number, order: number, budget: Budget) =>
    change(id, release(id, order), "inventory.released", budget);

  const publicService = implement(InventoryService, {
    async listInventory(request, call) {
      const status = request.status.map(fromPetStatus);
      const where = status.length === 0 ? { listed: true as const } : { listed: true as const, status };
      const { docs, nextPageToken } = await readPage<InventoryDoc>(request, {
        filter: [[...status].sort()],
        ids: request.petId,
        getMany: (ids) => entries.getMany(ids, call),
        list: (place) => entries.list({ ...place, where }, call),
        matches: (doc) => isOpen(doc) && (status.length === 0 || status.includes(doc.status)),
      });
      return { items: docs.map(toInventoryItem), nextPageToken };
    },

    async getInventory({ petId }, call) {
      const id = storedId(petId);
      const doc = id === undefined ? undefined : await entries.get(id, call);
      if (!isOpen(doc)) throw inventoryNotFound(petId);
      return { item: toInventoryItem(doc) };
    },

    async batchGetInventory({ petId }, call) {
      const ids = petId.map(storedId).filter((id) => id !== undefined);
      return { items: (await entries.getMany(ids, call)).filter(isOpen).map(toInventoryItem) };
    },

    async updateInventory({ petId, inventory, updateMask, ...condition }, call) {
      const id = storedId(petId);
      if (id === undefined) throw inventoryNotFound(petId);
      const decide = update(petId, said.changeOf(inventory, updateMask), condition);
      const { entry } = await change(id, decide, "inventory.quantity-set", call);
      return { item: toInventoryItem(entry) };
    },
  });

  const internalService = implement(InventoryInternalService, {
    async open({ petId, listing }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      return answer(await change(id, open(id, fromPetStatus(listing)), "inventory.opened", call));
    },

    async checkReserve({ petId, quantity }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      const look = async (latest: boolean) =>
        refusalOf(await entries.get(id, { deadline: call.deadline, latest }), quantity);
      // Nothing is written that would prove the entry to be current: what refuses is read again in a way that does.
      const refusal = (await look(false)) && (await look(true));
      return { outcome: Outcome[refusal ?? "OK"] };
    },

    async reserve({ petId, orderId, quantity }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id === undefined || order === undefined) return notFound;
      const { outcome } = await change(id, reserve(order, quantity), "inventory.reserved", call);
      return { outcome: Outcome[outcome] };
    },

    async commit({ petId, orderId }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id !== undefined && order !== undefined) await change(id, commit(order), "inventory.committed", call);
      return {};
    },

    async release({ petId, orderId }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id !== undefined && order !== undefined) await releaseOrder(id, order, call);
      return {};
    },

    async setListing({ petId, op, listing }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      return answer(await change(id, setListing(Number(op), fromPetStatus(listing)), "inventory.listing-set", call));
    },

    async retire({ petId, op }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      const { outcome } = await change(id, retire(Number(op)), "inventory.retired", call);
      return { outcome: Outcome[outcome] };
    },
  });

  return {
    implementations: [publicService, internalService],
    workers: [
      relay.worker,
      createReconciler({ ...deps, entries, orders, release: releaseOrder }),
      removing("inventory.tombstones", (limit, budget) => removeTombstones(entries, expiry, limit, budget), deps),
    ],
  };
}

/** An id beyond 2^53-1 was never given out: the store need not be asked. */
const notFound = { outcome: Outcome.NOT_FOUND };

const answer = ({ outcome, entry }: Ended) => ({ outcome: Outcome[outcome], stock: entry && stockOf(entry) });

const stockOf = ({ status, statusRev }: InventoryDoc) => ({
  status: toPetStatus(status),
  statusRev: BigInt(statusRev),
});
