/** Places orders: taking the units from the stock and storing the order happen in one transaction. */
import type { ClientSession } from "mongodb";
import type { PlainData } from "../../peer.ts";
import type { Database } from "./database.ts";

export type Order = PlainData["orders"];
export interface Refusal {
  readonly code: "PET_NOT_FOUND" | "PET_NOT_AVAILABLE" | "INSUFFICIENT_STOCK";
  readonly status: 404 | 409;
  readonly message: string;
}

/** Ids that are reserved at once; those that are unused when the process ends are skipped. */
const BLOCK = 50;

export function orders({ client, pets, inventory, orders, counters }: Database) {
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

  async function refusal(petId: number, session: ClientSession): Promise<Refusal> {
    const pet = await pets.findOne({ _id: petId }, { session });
    if (!pet) return { code: "PET_NOT_FOUND", status: 404, message: `No pet has the id ${petId}.` };
    return pet.status === "available"
      ? { code: "INSUFFICIENT_STOCK", status: 409, message: `Pet ${petId} has too few units in stock.` }
      : { code: "PET_NOT_AVAILABLE", status: 409, message: `Pet ${petId} is not available now.` };
  }

  return async (petId: number, quantity: number): Promise<Order | Refusal> => {
    const order: Order = { _id: await nextId(), petId, quantity, complete: false };
    return client.withSession((session) =>
      session.withTransaction(async () => {
        const entry = await inventory.findOneAndUpdate(
          { _id: petId, status: "available", quantity: { $gte: quantity } },
          { $inc: { quantity: -quantity } },
          { session, returnDocument: "after" },
        );
        if (!entry) return refusal(petId, session);
        if (entry.quantity === 0) {
          await inventory.updateOne({ _id: petId }, { $set: { status: "pending" } }, { session });
          await pets.updateOne({ _id: petId }, { $set: { status: "pending" } }, { session });
        }
        await orders.insertOne(order, { session });
        return order;
      }),
    );
  };
}
