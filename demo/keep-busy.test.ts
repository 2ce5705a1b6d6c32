import { type Petstore, PetstoreError } from "@petstore/client";
import { expect, test } from "vitest";
import { keepBusy } from "./keep-busy.ts";

const pets = [{ id: 7, name: "Rex" }];

interface Stub {
  /** The pet's open orders. */
  readonly open?: readonly number[];
  readonly status?: string;
  /** What an order for the pet fails with. */
  readonly refusals?: readonly string[];
}

/** Makes one change to the pet; `chance` is what each random number is. Returns the calls that changed something. */
async function change({ open = [], status = "available", refusals = [] }: Stub, chance: number) {
  const calls: unknown[] = [];
  const told: string[] = [];
  const stop = new AbortController();
  const codes = [...refusals];
  const petstore = {
    orders: {
      async *list() {
        yield* open.map((id) => ({ id }));
      },
      async create(order: object) {
        const code = codes.shift();
        if (code !== undefined) throw new PetstoreError(code, "no");
        calls.push(["order", order]);
      },
      update: async (...[id, fields]: unknown[]) => void calls.push(["complete", id, fields]),
      delete: async (id: number) => void calls.push(["cancel", id]),
    },
    inventory: {
      get: async () => ({ quantity: 2, status, etag: "e" }),
      update: async (...[id, fields, { ifMatch }]: [unknown, unknown, { ifMatch: string }]) =>
        void calls.push(["refill", id, fields, ifMatch]),
    },
  } as unknown as Petstore;
  let pauses = 0;
  const counts = await keepBusy(petstore, pets, {
    random: () => chance,
    pause: async () => void (++pauses > 5 && stop.abort()),
    signal: stop.signal,
    changes: 1,
    tell: (what) => told.push(what),
  });
  return { calls, told, counts };
}

test.each<[string, Stub, number, unknown]>([
  ["an open order is completed", { open: [3] }, 0.7, ["complete", 3, { complete: true }]],
  ["or cancelled", { open: [3] }, 0.8, ["cancel", 3]],
  ["some of what is there is ordered, and no more", {}, 0.9, ["order", { petId: 7, quantity: 2 }]],
  ["what is sold is brought in again", { status: "sold" }, 0.5, ["refill", 7, { quantity: 7 }, "e"]],
])("%s", async (_, stub, chance, call) => {
  expect((await change(stub, chance)).calls).toEqual([call]);
});

test("a pet that is on hold is left as it is", async () => {
  const { calls, told } = await change({ status: "pending" }, 0);
  expect(calls).toEqual([]);
  expect(new Set(told)).toEqual(new Set(["Rex is on hold"]));
});

test("another client may be faster, and the petstore away", async () => {
  const missed = await change({ refusals: ["PET_NOT_AVAILABLE"] }, 0);
  expect(missed.counts).toMatchObject({ order: 0, missed: 1 });
  const away = await change({ refusals: ["UNREACHABLE", "OVERLOADED"] }, 0);
  expect(away).toMatchObject({ counts: { order: 1, missed: 0 }, calls: [["order", { petId: 7, quantity: 1 }]] });
  await expect(change({ refusals: ["PERMISSION_DENIED"] }, 0)).rejects.toThrow("no");
});
