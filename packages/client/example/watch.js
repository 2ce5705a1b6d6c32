import { createPetstore } from "@petstore/client";

const petstore = createPetstore({ baseUrl: process.env.PETSTORE_URL ?? "http://127.0.0.1:8080" });

/** @type {Map<number, string>} What is in the shop, for as long as this runs. */
const shop = new Map();

for await (const change of petstore.pets.watch({ snapshot: true })) {
  switch (change.type) {
    case "snapshot":
      shop.clear();
      break;
    case "synced":
      console.log(`There are ${shop.size} pets.`);
      break;
    case "deleted":
      shop.delete(change.record.id);
      break;
    default: // present, created or updated
      shop.set(change.record.id, change.record.name);
      console.log(`${change.record.name}: ${change.type}`);
  }
}
