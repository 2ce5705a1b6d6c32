/**
 * The names of pets and categories, for pages that show their identifiers: requested in batches and kept up to date. And the
 * other way round, to choose one by its name: what is offered, and which one a text means.
 */

import { InvalidInput, integer } from "../parts/field-errors.ts";
import { petstore } from "../petstore.ts";
import { ofCaller, sessions } from "../session.ts";
import { listen, whenMissed } from "./changes.ts";
import type { NamedRecord } from "./listing.ts";
import { firstPage } from "./paged-list.ts";

type Named = "pet" | "category";

/** The most that one call may ask for. */
const MAX_IDS = 100;
/** After so many identifiers, names are forgotten that were not shown meanwhile. */
const MANY = 1_000;

const names = {
  pet: ofCaller<ReadonlyMap<number, string>>(new Map()),
  category: ofCaller<ReadonlyMap<number, string>>(new Map()),
};
/**
 * Identifiers that were shown of late, and of those before, as many again. Their names were requested, whether or not an
 * answer came.
 */
const late = { pet: new Set<number>(), category: new Set<number>() };
const before = { pet: new Set<number>(), category: new Set<number>() };
const isAsked = (kind: Named, id: number): boolean => late[kind].has(id) || before[kind].has(id);
const wanted = { pet: new Set<number>(), category: new Set<number>() };

const readers = {
  pet: (id: number[]) => Array.fromAsync(petstore.pets.list({ id })),
  category: (id: number[]) => Array.fromAsync(petstore.categories.list({ id })),
};

/** The name, or undefined until it is known; then the component that called this is drawn again. */
export function nameOf(kind: Named, id: number): string | undefined {
  const name = names[kind].value.get(id);
  if (name === undefined && !isAsked(kind, id)) {
    if (wanted[kind].size === 0) queueMicrotask(() => void read(kind));
    wanted[kind].add(id);
  }
  late[kind].add(id);
  return name;
}

export const petName = (id: number): string => nameOf("pet", id) ?? `Pet ${id}`;

/** A page may be open for days, and show others all the time. What shows a name is drawn again whenever they change. */
function forgetOld(kind: Named): void {
  if (late[kind].size <= MANY) return;
  before[kind] = late[kind];
  late[kind] = new Set();
  names[kind].value = new Map([...names[kind].value].filter(([id]) => before[kind].has(id)));
}

async function read(kind: Named): Promise<void> {
  const ids = [...wanted[kind]];
  wanted[kind].clear();
  forgetOld(kind);
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const some = ids.slice(from, from + MAX_IDS);
    // Without an answer the page shows the identifier, as it does anyway.
    const found = await readers[kind](some).catch(() => []);
    // Names that events brought meanwhile are newer.
    names[kind].value = new Map([...found.map(({ id, name }) => [id, name] as const), ...names[kind].value]);
  }
}

listen(({ kind, record }) => {
  if (kind !== "pet" && kind !== "category") return;
  const { id, name } = record as { readonly id: number; readonly name: string };
  // Names that are not shown are not kept: there may be very many.
  if (!isAsked(kind, id) || names[kind].value.get(id) === name) return;
  names[kind].value = new Map(names[kind].value).set(id, name);
});

const askAgain = () => {
  for (const kind of ["pet", "category"] as const)
    for (const ids of [late[kind], before[kind]]) for (const id of ids) if (!names[kind].peek().has(id)) ids.delete(id);
};
sessions.subscribe(askAgain);
whenMissed(askAgain);

export type Offered = "category" | "pet" | "available pet";

/** How many are offered at once. */
const OFFERED = 20;
/** The longest text that names are searched for. */
export const MAX_NAME = 200;

/** The first whose names begin with a text; for an empty one the newest. */
async function find(offered: Offered, text: string): Promise<readonly NamedRecord[]> {
  const filter = { limit: OFFERED, name: text.slice(0, MAX_NAME) || undefined };
  const status = offered === "available pet" ? "available" : undefined;
  const list = offered === "category" ? petstore.categories.list(filter) : petstore.pets.list({ ...filter, status });
  return (await firstPage<NamedRecord>(list)).items;
}

async function named(offered: Offered, id: number): Promise<NamedRecord | undefined> {
  const list = offered === "category" ? petstore.categories.list({ id }) : petstore.pets.list({ id });
  return (await firstPage<NamedRecord>(list)).items[0];
}

/** How a record is offered. */
export const label = ({ name, id }: NamedRecord): string => `${name} (${id})`;

export const offer = async (offered: Offered, text: string): Promise<readonly string[]> =>
  (await find(offered, text)).map(label);

/** The same for a record of which only the identifier is at hand. Until its name is known, it is that. */
export function labelOf(kind: "pet" | "category", id: number): string {
  const name = nameOf(kind, id);
  return name === undefined ? `${id}` : label({ name, id });
}

/**
 * The identifier of what a text means: one that was offered, a number, or a name that no other has. `shown` is what the
 * form was opened with: it is the same one if somebody renames it meanwhile.
 * @throws InvalidInput
 */
export async function idMeant(offered: Offered, field: string, text: string, shown?: NamedRecord): Promise<number> {
  if (shown && text === label(shown)) return shown.id;
  if (/^\s*-?\d+\s*$/.test(text)) return integer(field, text);
  // A name may itself end with a number in parentheses.
  const [, name, id] = /^(.*) \((\d{1,15})\)$/.exec(text) ?? [];
  if (id && (await named(offered, Number(id)))?.name === name) return Number(id);
  const isMeant = (record: NamedRecord) => record.name.toLowerCase() === text.trim().toLowerCase();
  const [one, other] = (await find(offered, text.trim())).filter(isMeant);
  if (one && !other) return one.id;
  const who = one ? "Several have" : offered === "available pet" ? "No available pet has" : "None has";
  throw new InvalidInput(field, `${who} this name: choose one of the list.`);
}
