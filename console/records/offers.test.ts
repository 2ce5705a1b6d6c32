import { expect, test, vi } from "vitest";
import { idMeant } from "./names.ts";

const all = [
  { id: 1, name: "Rex", status: "sold" },
  { id: 2, name: "rex", status: "available" },
  { id: 3, name: "Max", status: "sold" },
];
interface Filter {
  readonly id?: number;
  readonly name?: string;
  readonly status?: string;
}
vi.mock("../petstore.ts", () => {
  const list = ({ id = 0, name = "", status = "" }: Filter) => ({
    async *pages() {
      const isFound = (each: (typeof all)[number]) =>
        id === 0
          ? each.name.toLowerCase().startsWith(name.toLowerCase()) && (status === "" || each.status === status)
          : each.id === id;
      yield { items: all.filter(isFound), nextPageToken: "" };
    },
  });
  return { petstore: { pets: { list } } };
});

test("a name means the only one of what is offered", async () => {
  expect(await idMeant("available pet", "petId", "Rex")).toBe(2);
  await expect(idMeant("pet", "petId", "Rex")).rejects.toThrow("Several have this name");
  await expect(idMeant("available pet", "petId", "Max")).rejects.toThrow("No available pet has this name");
  expect(await idMeant("available pet", "petId", "Max (3)")).toBe(3); // why not, the petstore says
});

test("what a form was opened with is meant by its text, also when it has another name by now", async () => {
  const shown = { id: 3, name: "Moritz" };
  expect(await idMeant("pet", "petId", "Moritz (3)", shown)).toBe(3);
  await expect(idMeant("pet", "petId", "Moritz (3)")).rejects.toThrow("None has this name");
  expect(await idMeant("pet", "petId", "Rex (1)", shown)).toBe(1);
});
