/**
 * The names of pets and categories, for pages that show their identifiers. They are requested in batches and kept up to date.
 */
import { petstore } from "../petstore.ts";
import { ofCaller, sessions } from "../session.ts";
import { listen, whenMissed } from "./changes.ts";

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
