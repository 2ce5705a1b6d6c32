/** Finds contradictions between what clients were told and what was stored, when everything is over. */
import { isRead, type Kind, kindOf, type Operation } from "../workload/operations.ts";
import { nameOf, notFound, type Outcome } from "../workload/perform.ts";
import type { State } from "./state.ts";

/** One attempt of an operation. Times are numbers of earlier events. */
export interface Attempt {
  readonly operation: Operation;
  readonly sent: number;
  /** The records that it concerns and that existed when it was sent. */
  readonly about: readonly (readonly [Kind, number])[];
  over?: { readonly at: number; readonly outcome: Outcome };
}
/** The records that an operation concerns. */
export const recordsOf = (operation: Operation): (readonly [Kind, number])[] => [
  ...("id" in operation ? [[kindOf(operation), operation.id] as const] : []),
  ...("category" in operation && operation.category !== undefined ? [["category", operation.category] as const] : []),
  ...("pet" in operation && operation.pet !== undefined ? [["pet", operation.pet] as const] : []),
];

type Violation = string | false | undefined;
/** Ids of the records in which a mark has ever been seen. */
type Marked = ReadonlyMap<string, ReadonlySet<number>>;

export const isCreate = ({ do: what }: Operation) => what.startsWith("create") || what === "place order";
export const isDelete = ({ do: what }: Operation) => what.startsWith("delete") || what === "cancel order";
/** Whether the operation can succeed without changing the record. */
const mayChangeNothing = ({ do: what }: Operation) => what === "stock" || what === "complete order";

/** The mark that an operation leaves; undefined if it leaves none. */
export const markBy = (operation: Operation): string | undefined =>
  isDelete(operation) || mayChangeNothing(operation) || isRead(operation)
    ? undefined
    : `${kindOf(operation)} ${nameOf(operation.mark)}`;

export function violationsIn(
  attempts: readonly Attempt[],
  marked: Marked,
  state: State,
  isThere: (kind: Kind, id: number) => boolean,
): string[] {
  const idsOf = (operation: Operation) => [...(marked.get(markBy(operation) ?? "") ?? [])];
  return [
    ...attempts.flatMap((attempt) => ofOne(attempt, idsOf)),
    ...ofKeys(attempts, idsOf),
    ...ofConditions(attempts),
    ...attempts.flatMap((attempt) => (isRepeat(attempt, attempts) ? [] : ofAbsence(attempt, isThere))),
    ...ofEnds(attempts, idsOf, state),
  ].filter((violation) => typeof violation === "string");
}

/** Whether the key of the attempt was sent before: its answer may say what was true then. */
export const isRepeat = ({ operation, sent }: Attempt, attempts: readonly Attempt[]): boolean =>
  operation.key !== undefined &&
  attempts.some(
    (other) =>
      other.sent < sent && other.operation.key === operation.key && kindOf(other.operation) === kindOf(operation),
  );

/** The refusals that bind an idempotency key. */
const BINDING = [
  "PET_NOT_FOUND",
  "CATEGORY_NOT_FOUND",
  "PET_NOT_AVAILABLE",
  "INSUFFICIENT_STOCK",
  "TOO_MANY_OPEN_ORDERS",
];
/** Whether the attempt was answered with a refusal that binds its key. */
export const isBound = ({ over }: Attempt): boolean =>
  over?.outcome.is === "refused" && BINDING.includes(over.outcome.reason);

type IdsOf = (operation: Operation) => number[];

function ofOne({ operation, over }: Attempt, idsOf: IdsOf): Violation[] {
  const ids = idsOf(operation);
  const refused = operation.key === undefined && over?.outcome.is === "refused" && over.outcome.reason;
  return [
    refused && ids.length > 0 && `${operation.do} (${operation.mark}) was refused with ${refused} and took effect`,
    isCreate(operation) && ids.length > 1 && `${operation.do} (${operation.mark}) made ${ids.length} records`,
  ];
}

/** A record that existed all the time must be found. */
function ofAbsence({ operation, over, about }: Attempt, isThere: (kind: Kind, id: number) => boolean): Violation[] {
  const reason = over?.outcome.is === "refused" && over.outcome.reason;
  return about.map(
    ([kind, id]) =>
      reason === notFound(kind) &&
      isThere(kind, id) &&
      `${operation.do} was refused with ${reason}, and ${kind} ${id} was there before and is there still`,
  );
}

/** One key has one record and one answer. */
function ofKeys(attempts: readonly Attempt[], idsOf: IdsOf): Violation[] {
  const groups = Map.groupBy(
    attempts.filter(({ operation }) => operation.key !== undefined),
    ({ operation }) => `${operation.key} for a ${kindOf(operation)}`,
  );
  return [...groups].flatMap(([key, all]) => {
    const records = new Set(all.flatMap(({ operation }) => idsOf(operation)));
    const bodies = Map.groupBy(all, ({ operation }) => JSON.stringify(operation));
    const answers = new Set(all.flatMap(keyAnswer));
    const isReused = ({ over }: Attempt) =>
      over?.outcome.is === "refused" && over.outcome.reason === "IDEMPOTENCY_KEY_REUSED";
    return [
      records.size > 1 && `${key} made ${[...records].join(" and ")}`,
      answers.size > 1 && `${key} was answered with ${[...answers].join(" and ")}`,
      records.size > 0 && all.some(isBound) && `${key} was refused and made ${[...records].join(" and ")}`,
      all.some(isReused) && bodies.size === 1 && `${key} was refused as used by another body, and there is none`,
      ...[...bodies].map(
        ([body, same]) =>
          same.some(isReused) &&
          same.flatMap(keyAnswer).length > 0 &&
          `${key} was refused as used by another body, and answered, for ${body}`,
      ),
    ];
  });
}

/** The answer that a key was bound to, as this attempt was told. */
const keyAnswer = (attempt: Attempt): string[] => {
  const outcome = attempt.over?.outcome;
  if (outcome?.is === "done") return [JSON.stringify(outcome.shown)];
  return outcome?.is === "refused" && isBound(attempt) ? [outcome.reason] : [];
};

/** Of two changes conditional on the same version only one can succeed. Several deletions of a record may succeed. */
function ofConditions(attempts: readonly Attempt[]): Violation[] {
  const done = attempts
    .filter(({ over }) => over?.outcome.is === "done")
    .map(({ operation }) => operation)
    .filter((operation) => operation.match !== undefined && "id" in operation && !mayChangeNothing(operation));
  const groups = Map.groupBy(done, (operation) => `${kindOf(operation)} ${"id" in operation && operation.id}`);
  return [...groups].flatMap(([record, all]) =>
    [...Map.groupBy(all, ({ match }) => match)].map(([version, same]) => {
      const changes = same.filter((operation) => !isDelete(operation)).length + (same.some(isDelete) ? 1 : 0);
      return changes > 1 && `${changes} writes were done to ${record} at version ${version}`;
    }),
  );
}

/** Whatever was deleted or completed was requested, and what was acknowledged has stayed. */
function ofEnds(attempts: readonly Attempt[], idsOf: IdsOf, { categories, pets, orders }: State): Violation[] {
  const ends = [
    { what: "delete category", docs: categories, end: "DELETED" },
    { what: "delete pet", docs: pets, end: "DELETED" },
    { what: "cancel order", docs: orders, end: "CANCELLED" },
    { what: "complete order", docs: orders, end: "COMPLETE" },
  ];
  const placed = attempts.flatMap(({ operation }) =>
    operation.do === "place order" && operation.complete ? idsOf(operation) : [],
  );
  return ends.flatMap(({ what, docs, end }) =>
    [...docs].flatMap(([id, { state }]) => {
      const asked = attempts.filter(({ operation: o }) => o.do === what && "id" in o && o.id === id);
      const outcomes = asked.map(({ over }) => over?.outcome.is);
      const wanted = outcomes.some((is) => is !== "refused") || (what === "complete order" && placed.includes(id));
      return [
        outcomes.includes("done") && state !== end && `${what} ${id} was done, and it is ${state}`,
        state === end && !wanted && `nobody asked to ${what} ${id}`,
      ];
    }),
  );
}
