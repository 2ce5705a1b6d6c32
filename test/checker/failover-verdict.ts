/** Compares what clients were told with what MongoDB has stored when everything is at rest. */

import type { Kind } from "../workload/operations.ts";
import { nameOf } from "../workload/perform.ts";
import type { History } from "./failover-history.ts";
import { wrongInTheEnd } from "./invariants.ts";
import { type CollectionName, type State, shownBy } from "./state.ts";
import { violationsIn } from "./violations.ts";

const collections = { category: "categories", pet: "pets", order: "orders", inventory: "inventory" } as const;

const visible = (state: State, kind: Kind, id: number) => {
  const collection: CollectionName = collections[kind];
  const stored = state[collection].get(id);
  return stored && shownBy(collection, stored as unknown as Parameters<typeof shownBy>[1]);
};

/** All violations, as sentences. */
export function verdict({ attempts, told, isThere, violations }: History, state: State): string[] {
  return [
    ...violations,
    ...wrongInTheEnd(state),
    ...violationsIn(attempts, marksIn(state), state, isThere),
    ...[...told.values()].flatMap(({ kind, id, version, gone }) => {
      const now = visible(state, kind, id);
      if (gone) return now ? [`${kind} ${id} is there, and its deletion was answered`] : [];
      if (!isThere(kind, id)) return [];
      if (!now) return [`${kind} ${id} is lost`];
      return now.version < version ? [`${kind} ${id} is at version ${now.version}, and ${version} was answered`] : [];
    }),
    ...renamedWithoutAnswer(attempts, state),
  ];
}

/** Ids of the records that contain a mark. Creating a pet or a category leaves the mark in its name, an order in its date. */
function marksIn({ categories, pets, orders }: State): Map<string, Set<number>> {
  const marks = new Map<string, Set<number>>();
  const note = (mark: string, id: number) => marks.set(mark, (marks.get(mark) ?? new Set()).add(id));
  for (const [id, { name }] of categories) note(`category ${name}`, id);
  for (const [id, { facts, state }] of pets) if (state !== "ABORTED") note(`pet ${facts?.name}`, id);
  for (const [id, { shipDate }] of orders) if (shipDate) note(`order ${nameOf(shipDate.seconds)}`, id);
  return marks;
}

/** A pet that only one client changes has the name of the last acknowledged change, or of a later one without an answer. */
function renamedWithoutAnswer(attempts: History["attempts"], { pets }: State): string[] {
  const changes = Map.groupBy(
    attempts.filter(({ operation }) => operation.do === "change pet"),
    ({ operation }) => ("id" in operation ? operation.id : 0),
  );
  return [...changes].flatMap(([id, all]) => {
    const last = all.findLastIndex(({ over }) => over?.outcome.is === "done");
    if (last < 0 || pets.get(id)?.state !== "ACTIVE") return [];
    const possible = all.slice(last).map(({ operation }) => nameOf(operation.mark));
    const name = pets.get(id)?.facts.name ?? "";
    return possible.includes(name) ? [] : [`pet ${id} is called ${name}, and was answered as ${possible[0]}`];
  });
}
