// npx node examples/node/order.ts
import { createPetstore } from "@petstore/client";

const baseUrl = process.env.PETSTORE_URL ?? "http://127.0.0.1:8080";
const { categories, pets, orders, inventory } = createPetstore({ baseUrl });

const category = await categories.create({ name: "dogs" });
const pet = await pets.create({ name: "Rex", categoryId: category.id });

let orderId = 0;
for await (const change of inventory.watch({ petId: pet.id, snapshot: true })) {
  if (change.type === "snapshot" || change.type === "synced") continue;
  const { status } = change.record;
  console.log(`${pet.name} is ${status}`);
  if (status === "available") {
    // Safe to repeat: the client gives each create a key of its own, and repeats it under that key.
    ({ id: orderId } = await orders.create({ petId: pet.id }));
  } else if (status === "pending") {
    await orders.update(orderId, { complete: true });
  } else {
    break;
  }
}
