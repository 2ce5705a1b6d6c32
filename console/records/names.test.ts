import { expect, test, vi } from "vitest";
import { tell } from "./changes.ts";
import { nameOf } from "./names.ts";

const { batchGetPets } = vi.hoisted(() => ({
  batchGetPets: vi.fn(async ({ petId }: { petId: bigint[] }) => ({
    pets: petId.filter((id) => id !== 3n).map((id) => ({ id, name: `Pet no. ${id}` })),
  })),
}));
vi.mock("../petstore.ts", () => ({ petstore: { pets: { batchGetPets } } }));

const read = () => new Promise((resolve) => setTimeout(resolve));
const asksFor = (wanted: bigint) => batchGetPets.mock.calls.filter(([{ petId }]) => petId.includes(wanted)).length;

test("of a page that is open for long the names are forgotten that it shows no more, and those alone", async () => {
  const [once, always, unknown] = [1n, 2n, 3n];
  nameOf("pet", once);
  for (let id = 10n; id < 3_500n; ) {
    for (const shown of [always, unknown]) nameOf("pet", shown);
    for (let row = 0; row < 100; row++) nameOf("pet", id++);
    await read();
  }
  expect(nameOf("pet", always)).toBe("Pet no. 2");
  expect(nameOf("pet", unknown)).toBeUndefined();
  expect(nameOf("pet", once)).toBeUndefined();
  await read();
  expect(nameOf("pet", once)).toBe("Pet no. 1");
  expect([once, always, unknown].map(asksFor)).toEqual([2, 1, 1]);

  tell({ kind: "pet", record: { id: always, name: "Rex" } as never, isDeleted: false, isOwn: false });
  expect(nameOf("pet", always)).toBe("Rex");
});
