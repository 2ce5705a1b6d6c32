/** Pets and categories by their names, to choose one: what is offered, and which one a text means. */
import { InvalidInput, integer } from "../parts/field-errors.ts";
import { petstore } from "../petstore.ts";
import type { NamedRecord } from "./listing.ts";
import { nameOf } from "./names.ts";
import { firstPage } from "./paged-list.ts";

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

async function read(offered: Offered, id: number): Promise<NamedRecord | undefined> {
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
  if (id && (await read(offered, Number(id)))?.name === name) return Number(id);
  const isMeant = (record: NamedRecord) => record.name.toLowerCase() === text.trim().toLowerCase();
  const [one, other] = (await find(offered, text.trim())).filter(isMeant);
  if (one && !other) return one.id;
  const who = one ? "Several have" : offered === "available pet" ? "No available pet has" : "None has";
  throw new InvalidInput(field, `${who} this name: choose one of the list.`);
}
