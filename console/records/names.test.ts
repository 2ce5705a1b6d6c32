import { expect, test, vi } from "vitest";
import { tell } from "./changes.ts";
import { nameOf } from "./names.ts";

const { list } = vi.hoisted(() => ({
  list: vi.fn(({ id: ids }: { id: number[] }) =>
    ids.filter((id) => id !== 3).map((id) => ({ id, name: `Pet no. ${id}` })),
  ),
}));
vi.mock("../petstore.ts", () => ({ petstore: { pets: { list } } }));

const read = () => new Promise((resolve) => setTimeout(resolve));
const asksFor = (wanted: number) => list.mock.calls.filter(([{ id }]) => id.includes(wanted)).length;

test("of a page that is open for long the names are forgotten that it shows no more, and those alone", async () => {
  const [once, always, unknown] = [1, 2, 3];
  nameOf("pet", once);
  for (let id = 10; id < 3_500; ) {
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
