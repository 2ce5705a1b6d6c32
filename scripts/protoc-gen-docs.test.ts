import { expect, test } from "vitest";
import { docs } from "#proto/docs.ts";

test("lines that belong together are joined, paragraphs stay apart", () => {
  expect(docs["petstore.order.v1.OrderService.UpdateOrder"]).toBe(
    "Changes an order: its ship date, or from open to complete.\n\n" +
      "The pet and the quantity are fixed; left out, they stay as they are, and so does `complete`. Without a mask, as " +
      "in PUT, an absent ship date is removed.",
  );
});

test("messages, fields, services, enums and their values have their comments, and others' files do not count", () => {
  expect(docs["petstore.pet.v1.Pet"]).toBe("An animal offered for sale.");
  expect(docs["petstore.pet.v1.Pet.name"]).toBe("The animal's name.");
  expect(docs["petstore.pet.v1.PetService"]).toBe("Manages the pets of the store.");
  expect(docs["petstore.common.v1.PetStatus.PET_STATUS_AVAILABLE"]).toBe("For sale.");
  expect(Object.keys(docs).filter((name) => !name.startsWith("petstore."))).toEqual([]);
});
