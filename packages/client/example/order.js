import { createPetstore, isPetstoreError, PetStatus } from "@petstore/client";

const petstore = createPetstore({ baseUrl: process.env.PETSTORE_URL ?? "http://127.0.0.1:8080" });

for await (const pet of petstore.pets.all({ status: [PetStatus.AVAILABLE] })) {
  try {
    const { order } = await petstore.orders.createOrder({ order: { petId: pet.id } });
    console.log(`${pet.name} is yours: order ${order?.id}`);
    break;
  } catch (error) {
    // Somebody was faster.
    if (!isPetstoreError(error) || error.reason !== "PET_NOT_AVAILABLE") throw error;
  }
}
