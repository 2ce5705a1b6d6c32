/** Every list query of the services, except those that find expired documents (`endedOn`), and MongoDB's plans for them. */
import type { Db, Document } from "mongodb";
import { prefixQueryOf } from "../../packages/store/mongo/lists.ts";

interface Asked {
  readonly query: string;
  readonly service: string;
  readonly collection: string;
  readonly where: Readonly<Record<string, unknown>>;
  readonly limit?: number;
  readonly order?: 1 | -1;
}
interface Plan {
  readonly query: string;
  readonly keys: number;
  readonly documents: number;
  readonly returned: number;
  readonly plan: string;
}

/** A page of 100 and the one extra record that shows whether another page follows. */
const PAGE = 101;
/** The batch size of a recovery worker. */
const BATCH = 100;

function all(pets: number, now: number): Asked[] {
  const categoryId = Math.ceil(pets / 2000);
  const [pet, entry, order] = [
    { service: "pet", collection: "pets" },
    { service: "inventory", collection: "inventory" },
    { service: "order", collection: "orders" },
  ] as const;
  const visible = true;
  const middle = { _id: { $lt: Math.floor(pets / 2) } };
  const batch = { limit: BATCH, order: 1 } as const;
  const lastHour = Math.floor(now / 3_600_000);
  const hours = (from: number) => Array.from({ length: 100 }, (_, i) => from - i);
  return [
    { query: "pets", ...pet, where: { visible } },
    { query: "pets, page in the middle", ...pet, where: { visible, ...middle } },
    { query: "pets of a category", ...pet, where: { visible, categoryId } },
    { query: "pets by status", ...pet, where: { visible, status: "pending" } },
    {
      query: "pets by two statuses, in the middle",
      ...pet,
      where: { visible, status: ["pending", "sold"], ...middle },
    },
    { query: "pets of a category by status", ...pet, where: { visible, categoryId, status: "available" } },
    { query: "has the category members", ...pet, where: { member: categoryId }, limit: 1, order: 1 },
    { query: "does a pet join the category", ...pet, where: { joining: categoryId }, limit: 1, order: 1 },
    { query: "unfinished pets", ...pet, where: { pending: true }, ...batch },
    { query: "entries", ...entry, where: { visible } },
    { query: "entries by status", ...entry, where: { visible, status: "sold" } },
    { query: "entries whose status is to be published", ...entry, where: { pending: true }, ...batch },
    { query: "entries with open orders", ...entry, where: { hasReservations: true }, ...batch },
    { query: "orders", ...order, where: { visible } },
    { query: "orders of a pet", ...order, where: { visible, petId: categoryId } },
    { query: "open orders", ...order, where: { visible, completed: false } },
    { query: "complete orders, in the middle", ...order, where: { visible, completed: true, ...middle } },
    { query: "open orders of a pet", ...order, where: { visible, petId: categoryId, completed: false } },
    { query: "categories", service: "category", collection: "categories", where: { visible } },
    {
      query: "unfinished categories",
      service: "category",
      collection: "categories",
      where: { pending: true },
      ...batch,
    },
    {
      query: "expired keys, none",
      service: "pet",
      collection: "keys",
      where: { hour: hours(lastHour - 25) },
      ...batch,
    },
    { query: "expired keys, many", service: "pet", collection: "keys", where: { hour: hours(lastHour) }, ...batch },
  ];
}

/** Lists by name. */
const byName = [
  { query: "pets by name", after: undefined },
  { query: "pets by name, in the middle", after: { key: "pet 5", _id: 5 } },
];

function queries(pets: number, now: number) {
  const lists = all(pets, now).map(({ where, limit = PAGE, order = -1, ...asked }) => {
    const { _id: beyond, ...fields } = where;
    const anyOf = Object.entries(fields).map(([field, value]) => [field, { $in: [value].flat() }]);
    const filter = { ...Object.fromEntries(anyOf), ...(beyond ? { _id: beyond } : {}) };
    const hint = Object.fromEntries([...Object.keys(fields), "_id"].map((field) => [field, 1]));
    return { ...asked, limit, filter, hint, sort: { _id: order } };
  });
  const names = byName.map(({ query, after }) => ({
    ...{ query, service: "pet", collection: "pets", limit: PAGE },
    ...prefixQueryOf({ field: "foldedName", prefix: "pet ", after, limit: PAGE }),
  }));
  return [...lists, ...names];
}

export async function* plans(db: (service: string) => Db, pets: number, now: number): AsyncGenerator<Plan> {
  for (const { query, service, collection, filter, hint, sort, limit } of queries(pets, now)) {
    const explained = await db(service)
      .collection<Document>(collection)
      .find(filter)
      .hint(hint)
      .sort(sort as Readonly<Record<string, 1 | -1>>)
      .limit(limit)
      .explain("executionStats");
    const { totalKeysExamined: keys, totalDocsExamined: documents, nReturned: returned } = explained.executionStats;
    yield { query, keys, documents, returned, plan: stages(explained.queryPlanner.winningPlan).join(" < ") };
  }
}

/** The plan's stages from the top down. Of parallel stages the first is shown, with their number. */
function stages(plan: Document | undefined): string[] {
  if (!plan) return [];
  const { stage, queryPlan, inputStage, inputStages } = plan;
  if (queryPlan) return stages(queryPlan);
  if (inputStages) return [stage, `${inputStages.length} x ${inputStages[0].stage}`];
  return [stage, ...stages(inputStage)];
}
