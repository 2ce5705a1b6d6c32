import { createPetstore, PetstoreError } from "@petstore/client";

const petstore = createPetstore({ baseUrl: process.env.PETSTORE_URL ?? "http://127.0.0.1:8080" });

for await (const pet of petstore.pets.list({ status: "available" })) {
  try {
    const order = await petstore.orders.create({ petId: pet.id });
    console.log(`${pet.name} is yours: order ${order.id}`);
    break;
  } catch (error) {
    // Somebody was faster.
    if (!(error instanceof PetstoreError) || error.code !== "PET_NOT_AVAILABLE") throw error;
  }
}
