import { type Doc, put, schema } from "@petstore/store/port";
import { expect, test } from "vitest";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { onBehalfOf, withCaller } from "./on-behalf.ts";

interface Saga extends Doc {
  readonly _id: number;
  readonly pending?: true | undefined;
  readonly caller?: string | undefined;
}

const by = (caller: string) => ({ deadline: Number.MAX_VALUE, requestId: "r", caller });

test("a pending document holds the caller that began it, whoever changes it, until it is finished", async () => {
  const sagas = withCaller(await openMemory({ clock: () => 0 }).collection(schema<Saga>()("sagas", {})));
  const become = async (pending: true | undefined, caller: string) => {
    await sagas.update(1, () => put({ _id: 1, pending }, undefined), by(caller));
    return (await sagas.get(1))?.caller;
  };
  expect(await become(true, "ann")).toBe("ann");
  expect(await become(true, "a worker")).toBe("ann");
  expect(await become(undefined, "a worker")).toBeUndefined();
  expect(await become(true, "bob")).toBe("bob");
});

test("work on it is done in that caller's name", () => {
  expect(onBehalfOf({ _id: 1, rev: 1, caller: "ann" } as Saga, by("a worker"))).toEqual(by("ann"));
  const own = by("bob");
  expect(onBehalfOf({ _id: 1, rev: 1 } as Saga, own)).toBe(own);
  expect(onBehalfOf({ _id: 1, rev: 1, caller: "bob" } as Saga, own)).toBe(own); // the store has let it in
});
