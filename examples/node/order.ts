// npx node examples/node/order.ts
import { createPetstore, PetStatus } from "@petstore/client";

const baseUrl = process.env.PETSTORE_URL ?? "http://127.0.0.1:8080";
const { categories, pets, orders, inventory } = createPetstore({ baseUrl });

const { category } = await categories.createCategory({ category: { name: "dogs" } });
const { pet } = await pets.createPet({ pet: { name: "Rex", categoryId: category?.id } });

let orderId: bigint | undefined;
for await (const change of inventory.watch({ petId: [pet?.id ?? 0n], snapshot: true })) {
  if (change.type === "snapshot" || change.type === "synced") continue;
  if (change.record.status === PetStatus.AVAILABLE) {
    console.log(`${pet?.name} is available`);
    // Safe to repeat: the client gives each create a key of its own, and repeats it under that key.
    const { order } = await orders.createOrder({ order: { petId: pet?.id } });
    orderId = order?.id;
  } else if (change.record.status === PetStatus.PENDING) {
    console.log(`${pet?.name} is pending`);
    await orders.updateOrder({ orderId, order: { complete: true } });
  } else {
    console.log(`${pet?.name} is sold`);
    break;
  }
}
