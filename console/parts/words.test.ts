import { expect, test } from "vitest";
import { wordsOf } from "./words.tsx";

const pet = { id: 1, name: "Rex", categoryId: 2, status: "pending", etag: '"4"' } as const;

test("each kind has its words", () => {
  expect(wordsOf("pet", pet)).toBe("Pet 1 Rex: pending");
  expect(wordsOf("order", { id: 5, petId: 1, quantity: 1, complete: false } as never)).toBe("Order 5 for pet 1: open");
  expect(wordsOf("order", { id: 6, complete: true } as never)).toBe("Order 6: complete");
  expect(wordsOf("inventory", { petId: 1, quantity: 0, status: "sold" } as never)).toBe("Stock of pet 1: 0, sold");
  expect(wordsOf("category", { id: 2, name: "dogs" } as never)).toBe("Category 2 dogs");
});

test("a status that only a newer service knows is unknown in words", () => {
  expect(wordsOf("pet", { ...pet, status: "7" as never })).toBe("Pet 1 Rex: unknown");
});
