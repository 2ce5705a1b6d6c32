import { startPetstore } from "@petstore/testing";
import { afterAll, beforeEach, expect, test } from "vitest";

const petstore = await startPetstore();
const { pets, categories, orders } = petstore.client;
afterAll(() => petstore.stop());
beforeEach(() => petstore.reset());

test("an order takes the pet", async () => {
  await categories.create({ name: "dogs" });
  await pets.create({ name: "Rex", categoryId: 1 });
  const order = await orders.create({ petId: 1 });
  expect(order).toMatchObject({ id: 1, quantity: 1, complete: false });
  await expect(orders.create({ petId: 1 })).rejects.toMatchObject({ code: "PET_NOT_AVAILABLE" });
});
