import { startPetstore } from "@petstore/testing";
import { afterAll, beforeEach, expect, test } from "vitest";

const petstore = await startPetstore();
const { pets, categories, orders } = petstore.client;
afterAll(() => petstore.stop());
beforeEach(() => petstore.reset());

test("an order takes the pet", async () => {
  await categories.createCategory({ category: { name: "dogs" } });
  await pets.createPet({ pet: { name: "Rex", categoryId: 1n } });
  const { order } = await orders.createOrder({ order: { petId: 1n } });
  expect(order?.id).toBe(1n);
  const again = orders.createOrder({ order: { petId: 1n } });
  await expect(again).rejects.toMatchObject({ reason: "PET_NOT_AVAILABLE" });
});
