/** Orders: storing one and taking its units from the stock happen in one transaction, and so does the opposite. */
import { type ClientSession, MongoServerError } from "mongodb";
import type { PlainData } from "../../peer.ts";
import type { Database } from "./database.ts";

export type Order = PlainData["orders"];
export interface Refusal {
  readonly code: keyof typeof STATUS;
  readonly message: string;
}
export const STATUS = {
  PET_NOT_FOUND: 404,
  ORDER_NOT_FOUND: 404,
  PET_NOT_AVAILABLE: 409,
  INSUFFICIENT_STOCK: 409,
  ORDER_COMPLETE: 409,
  IDEMPOTENCY_KEY_REUSED: 422,
} as const;

export interface OrdersPage {
  readonly limit: number;
  readonly petId?: number;
  /** Only orders below this id. */
  readonly before?: number;
}

/** Ids that are reserved at once; those that are unused when the process ends are skipped. */
const BLOCK = 50;
const DUPLICATE = 11000;

export function createOrders({ client, pets, inventory, orders, keys, counters }: Database) {
  let block = Promise.resolve({ last: 0, left: 0 });
  function nextId(): Promise<number> {
    const taken = block.then(async ({ last, left }) => {
      if (left > 0) return { last: last + 1, left: left - 1 };
      const by = { $inc: { last: BLOCK } };
      const counter = await counters.findOneAndUpdate({ _id: "orders" }, by, {
        upsert: true,
        returnDocument: "before",
      });
      return { last: (counter?.last ?? 0) + 1, left: BLOCK - 1 };
    });
    block = taken.catch(() => ({ last: 0, left: 0 }));
    return taken.then(({ last }) => last);
  }

  const inTransaction = <R>(work: (session: ClientSession) => Promise<R>): Promise<R> =>
    client.withSession((session) => session.withTransaction(() => work(session)));

  async function refusal(petId: number, session: ClientSession): Promise<Refusal> {
    const pet = await pets.findOne({ _id: petId }, { session });
    if (!pet) return { code: "PET_NOT_FOUND", message: `No pet has the id ${petId}.` };
    return pet.status === "available"
      ? { code: "INSUFFICIENT_STOCK", message: `Pet ${petId} has too few units in stock.` }
      : { code: "PET_NOT_AVAILABLE", message: `Pet ${petId} is not available now.` };
  }

  async function setStatus(petId: number, status: "available" | "pending", session: ClientSession): Promise<void> {
    await inventory.updateOne({ _id: petId }, { $set: { status } }, { session });
    await pets.updateOne({ _id: petId }, { $set: { status } }, { session });
  }

  async function place(petId: number, quantity: number, key?: string): Promise<Order | Refusal> {
    const order: Order = { _id: await nextId(), petId, quantity, complete: false };
    return inTransaction(async (session) => {
      const entry = await inventory.findOneAndUpdate(
        { _id: petId, status: "available", quantity: { $gte: quantity } },
        { $inc: { quantity: -quantity } },
        { session, returnDocument: "after" },
      );
      if (!entry) return refusal(petId, session);
      if (entry.quantity === 0) await setStatus(petId, "pending", session);
      await orders.insertOne(order, { session });
      if (key !== undefined)
        await keys.insertOne(
          { _id: key, body: bodyOf(petId, quantity), orderId: order._id, at: new Date() },
          { session },
        );
      return order;
    });
  }

  return {
    async place(petId: number, quantity: number, key?: string): Promise<Order | Refusal> {
      try {
        return await place(petId, quantity, key);
      } catch (error) {
        if (key === undefined || !(error instanceof MongoServerError) || error.code !== DUPLICATE) throw error;
      }
      const known = await keys.findOne({ _id: key });
      if (known?.body !== bodyOf(petId, quantity))
        return { code: "IDEMPOTENCY_KEY_REUSED", message: "The key was used for another order." };
      return { _id: known.orderId, petId, quantity, complete: false };
    },

    get: (id: number): Promise<Order | null> => orders.findOne({ _id: id }),

    /** Newest first; has one more than the limit if there are more. */
    list: ({ limit, petId, before }: OrdersPage): Promise<Order[]> =>
      orders
        .find({
          ...(petId === undefined ? {} : { petId }),
          ...(before === undefined ? {} : { _id: { $lt: before } }),
        })
        .sort({ _id: -1 })
        .limit(limit + 1)
        .toArray(),

    async complete(id: number): Promise<Order | Refusal> {
      const order = await orders.findOneAndUpdate(
        { _id: id },
        { $set: { complete: true } },
        { returnDocument: "after" },
      );
      return order ?? notFound(id);
    },

    cancel: (id: number): Promise<Refusal | undefined> =>
      inTransaction(async (session) => {
        const order = await orders.findOneAndDelete({ _id: id, complete: false }, { session });
        if (!order) {
          const isComplete = await orders.findOne({ _id: id }, { session });
          return isComplete ? { code: "ORDER_COMPLETE", message: `The order ${id} is complete.` } : notFound(id);
        }
        const { petId, quantity } = order;
        const back = { $inc: { quantity } };
        const entry = await inventory.findOneAndUpdate({ _id: petId }, back, { session, returnDocument: "before" });
        if (entry?.quantity === 0 && entry.status === "pending") await setStatus(petId, "available", session);
        return undefined;
      }),
  };
}

const bodyOf = (petId: number, quantity: number): string => JSON.stringify([petId, quantity]);
export const notFound = (id: number): Refusal => ({ code: "ORDER_NOT_FOUND", message: `No order has the id ${id}.` });
