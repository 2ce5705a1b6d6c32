import { type Doc, put, schema } from "@petstore/store/port";
import { expect, test } from "vitest";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { onBehalfOf, withCaller } from "./sagas.ts";

interface Saga extends Doc {
  readonly _id: number;
  readonly pending?: true | undefined;
  readonly caller?: string | undefined;
}

const progress = { hasBegun: false };
const by = (caller: string) => ({ deadline: Number.MAX_VALUE, requestId: "r", caller, progress });

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

test("work on it is done in that caller's name, as part of the same call", () => {
  const worker = by("a worker");
  const on = onBehalfOf({ _id: 1, rev: 1, caller: "ann" } as Saga, worker);
  expect(on).toEqual(by("ann"));
  expect(on.progress).toBe(worker.progress);
  expect(onBehalfOf({ _id: 1, rev: 1 } as Saga, worker)).toEqual(worker);
});
