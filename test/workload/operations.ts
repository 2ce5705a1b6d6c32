/** Operations of clients as data, and how they are drawn. */
import fc from "fast-check";
import type { Status } from "../../services/records/record.ts";

export type Kind = "category" | "pet" | "order" | "inventory";

interface Common {
  /** A number that the write leaves in the record, so that its effect can be told from all others. */
  readonly mark: number;
  /** Idempotency key of a create. */
  readonly key?: string | undefined;
  /** The version in If-Match. */
  readonly match?: number | undefined;
}

/** `id`, `category` and `pet` are ids of records. While an operation is drawn, they are positions among the known records. */
export type Operation = Common &
  (
    | { readonly do: "create category" }
    | { readonly do: "rename category" | "delete category"; readonly id: number }
    | { readonly do: "create pet"; readonly category: number; readonly status?: Status | undefined }
    | {
        readonly do: "change pet";
        readonly id: number;
        readonly category?: number | undefined;
        readonly status?: Status | undefined;
      }
    | { readonly do: "delete pet"; readonly id: number }
    | {
        readonly do: "place order";
        readonly pet?: number | undefined;
        readonly quantity: number;
        readonly complete?: boolean | undefined;
      }
    | { readonly do: "date order" | "complete order" | "cancel order"; readonly id: number }
    | { readonly do: "stock"; readonly id: number; readonly quantity: number }
    | { readonly do: `see ${Kind}`; readonly id: number; readonly how: "alone" | "batch" | "listed" }
    | { readonly do: `list ${Kind}` }
  );

export const kindOf = (operation: Operation): Kind =>
  operation.do === "stock" ? "inventory" : (operation.do.split(" ")[1] as Kind);

export const isRead = ({ do: what }: Operation) => /^(see|list) /.test(what);

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const kind = fc.constantFrom<Kind[]>("category", "pet", "order", "inventory");
const pick = fc.nat({ max: 8 });
/** Positions from this one on stand for records that nobody knows yet. */
export const UNKNOWN = 7;
const maybeStatus = fc.constantFrom<(Status | undefined)[]>(undefined, undefined, "available", "pending", "sold");
// Versions that records sometimes reach.
const match = fc.constantFrom(undefined, undefined, undefined, undefined, 1, 2);
const KEYS = 3;
const BODIES = 2;
/** A key with one of the bodies that are sent with it, each of which has its own mark. Or no key. */
const keyed = maybe(fc.record({ key: fc.nat({ max: KEYS - 1 }), body: fc.nat({ max: BODIES - 1 }) }));
/** The first mark of operations without a key. */
const UNKEYED = 1_000;

type Drawn = Operation extends infer O ? (O extends unknown ? Omit<O, "mark" | "key"> : never) : never;
const drawn: fc.Arbitrary<Drawn> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constant("create category" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("rename category" as const), id: pick, match }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("delete category" as const), id: pick, match }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("create pet" as const), category: pick, status: maybeStatus }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("change pet" as const),
      id: pick,
      category: maybe(pick),
      status: maybeStatus,
      match,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete pet" as const), id: pick, match }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("place order" as const),
      pet: fc.option(pick, { nil: undefined, freq: 6 }),
      quantity: fc.integer({ min: 1, max: 2 }),
      complete: maybe(fc.boolean()),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("date order" as const), id: pick, match }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("complete order" as const), id: pick, match }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("cancel order" as const), id: pick, match }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("stock" as const), id: pick, quantity: fc.nat({ max: 4 }), match }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: kind.map((name) => `see ${name}` as const),
      id: pick,
      how: fc.constantFrom("alone" as const, "batch" as const, "listed" as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: kind.map((name) => `list ${name}` as const) }) },
);

/**
 * The programs of several clients, each a sequence of operations. Sometimes all of them concern the same few records, or
 * records that are just being created.
 */
export const programs = (clients: number, length: number): fc.Arbitrary<Operation[][]> =>
  fc
    .tuple(
      fc.array(fc.array(fc.tuple(drawn, keyed), { minLength: 1, maxLength: length }), {
        minLength: 1,
        maxLength: clients,
      }),
      fc.constantFrom(undefined, 0, UNKNOWN),
    )
    .map(([all, id]) =>
      all.map((program, client) =>
        program.map(([wide, use], place): Operation => {
          const moves = id === UNKNOWN && wide.do === "change pet" && wide.category !== undefined;
          const focus = { ...(id !== undefined && "id" in wide && { id }), ...(moves && { category: UNKNOWN }) };
          const operation = { ...wide, ...focus };
          const mark = UNKEYED + client * length + place;
          const creates = operation.do.startsWith("create") || operation.do === "place order";
          if (!creates || !use) return { ...operation, mark };
          return { ...operation, mark: 1 + use.key * BODIES + use.body, key: `key-${use.key}` };
        }),
      ),
    );

/** The first operations of every history, so that most later ones find a record. */
export const prelude: Operation[] = [
  { do: "create category", mark: 900 },
  { do: "create category", mark: 901 },
  { do: "create pet", category: 0, mark: 902 },
  { do: "create pet", category: 1, mark: 903 },
  { do: "stock", id: 1, quantity: 3, mark: 904 },
];

/** The operation with the ids of real records: `known(kind)` are the ids that some client has seen. */
export function resolve(operation: Operation, known: (kind: Kind) => readonly number[]): Operation {
  // The id of a record that may be created later stands for a missing one.
  const at = (kind: Kind, place: number) => {
    const ids = known(kind);
    const next = Math.max(0, ...ids) + 1;
    return place < UNKNOWN ? (ids[place % Math.max(1, ids.length)] ?? next) : next + place - UNKNOWN;
  };
  const kind = kindOf(operation);
  return {
    ...operation,
    ...("id" in operation && { id: at(kind === "inventory" ? "pet" : kind, operation.id) }),
    ...("category" in operation &&
      operation.category !== undefined && { category: at("category", operation.category) }),
    ...("pet" in operation && operation.pet !== undefined && { pet: at("pet", operation.pet) }),
  };
}
