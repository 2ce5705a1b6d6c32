/** A history that fails is made small, and told. */
import { expect, test } from "vitest";
import type { Kind, Operation } from "../workload/operations.ts";
import type { Shown } from "../workload/perform.ts";
import type { Run } from "./draw.ts";
import { type Event, type History, strikesOf } from "./histories/history.ts";
import { type Play, shrink } from "./shrink.ts";
import { story } from "./story.ts";

const harmless = (mark: number): Operation => ({ do: "list pet", mark });
const wrong: Operation = { do: "cancel order", id: 3, mark: 7 };
const history: History = {
  days: [
    [[harmless(1), harmless(2)], [harmless(3)]],
    [[harmless(4), wrong, harmless(5)], [harmless(6)]],
  ],
  seed: 5,
  replicas: 2,
  rates: { calls: 0.4, deaths: 0.01, unfairness: 4, slowness: 2 },
};
const run: Run = { kind: "many days", history };

/** Breaks if the order is cancelled while calls are lost and the third fault strikes, under every other seed. */
const play: Play = async ({ history }, witness) => {
  const strikes = strikesOf(history, witness);
  const struck = Array.from({ length: 5 }, (_, i) => strikes("lost", `call ${i}`));
  const asked = history.days.flat(2).some((operation) => operation.do === "cancel order");
  const isBroken = asked && history.rates.calls > 0 && struck[2] && history.seed % 2 === 1;
  return isBroken ? [`order ${history.seed} holds units`] : [];
};

test("it is made as small as it gets, without another failure taking its place", async () => {
  const { history } = await shrink(run, ["order 5 holds units"], play);
  expect(history.days).toEqual([[[wrong]]]);
  expect(history.rates).toEqual({ calls: 0.4, deaths: 0, unfairness: 1, slowness: 0 });
  expect(new Set(history.spared)).toEqual(new Set([0, 1, 3, 4]));
  expect((await shrink(run, ["pet 5 is lost"], play)).history).toEqual(run.history);
});

test("it is told: who asked what, which fault struck where, what was stored and answered, and what is wrong", () => {
  const cancel = { client: 1, operation: wrong } as const;
  const order = (state: string, rev: number) => ({ _id: 3, rev, state, petId: 2, quantity: 1 });
  const entry = (quantity: number) => ({ _id: 2, rev: quantity, quantity, reserved: 1 });
  const shown = (kind: Kind, id: number, view: Shown["view"]): Shown => ({ kind, id, version: 1, view });
  const events: Event[] = [
    { is: "answered", client: 0, operation: wrong, outcome: { is: "done", shown: shown("order", 3, { pet: 2 }) } },
    { is: "answered", client: 0, operation: wrong, outcome: { is: "done", shown: shown("pet", 9, { name: "Rex" }) } },
    { is: "asked", ...cancel },
    { is: "wrote", collection: "orders", after: order("RESERVED", 1), before: undefined },
    { is: "wrote", collection: "orders", after: order("CANCELLED", 2), before: order("RESERVED", 1) },
    { is: "wrote", collection: "inventory", after: entry(2), before: entry(1) },
    { is: "wrote", collection: "categories", after: { _id: 1, rev: 1, state: "ACTIVE" }, before: undefined },
    { is: "struck", fault: "unanswered", where: "Release, from order to inventory" },
    { is: "answered", ...cancel, outcome: { is: "unknown" } },
  ];
  expect(story(events, ["order 3 is CANCELLED and pet 2 still holds units for it"])).toEqual([
    'before: order 3 {"pet":2}',
    "client 1 asks: cancel order id 3 (mark 7)",
    "  stored: order 3: state CANCELLED, petId 2, quantity 1",
    "  stored: inventory 2: quantity 2 (was 1)",
    "  fault: an answer is lost (Release, from order to inventory)",
    "client 1 is not told whether cancel order was done",
    "So: order 3 is CANCELLED and pet 2 still holds units for it.",
  ]);
});
