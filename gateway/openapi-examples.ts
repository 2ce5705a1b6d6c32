import type { Sources } from "connect-transcoder";

/** The examples of the OpenAPI document. They work in this order on an empty petstore: identifiers start at 1. */
export const examples: Sources["examples"] = {
  "petstore.category.v1.NewCategory": [{ name: "Dogs", description: "Loyal, loud and hungry" }],
  "petstore.category.v1.Category": [{ id: 1, name: "Dogs", description: "Loyal, loud and hungry" }],
  "petstore.pet.v1.NewPet": [{ name: "Rex", categoryId: 1, status: "available" }],
  "petstore.pet.v1.Pet": [{ id: 1, name: "Rex", categoryId: 1, status: "available" }],
  "petstore.inventory.v1.InventoryUpdate": [{ quantity: 10 }],
  "petstore.inventory.v1.InventoryItem": [{ petId: 1, quantity: 10, status: "available" }],
  "petstore.order.v1.Order": [
    { petId: 1, quantity: 1, shipDate: "2030-06-01T12:00:00Z", complete: false },
    { shipDate: "2030-06-01T12:00:00Z" },
  ],
  // What an order is for does not change.
  "petstore.order.v1.UpdateOrderRequest": [{ order: { shipDate: "2030-07-01T12:00:00Z" } }],
};

export const patchExamples: Sources["patchExamples"] = {
  "petstore.category.v1.NewCategory": [{ description: null }],
  "petstore.pet.v1.NewPet": [{ name: "Rex the Second" }],
  "petstore.inventory.v1.InventoryUpdate": [{ quantity: 10 }],
  "petstore.order.v1.Order": [{ shipDate: "2030-07-01T12:00:00Z" }, { complete: true }],
};
