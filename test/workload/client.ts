/** A client that does one thing after the other and remembers which records it has heard of. */
import { type Kind, kindOf, type Operation, resolve } from "./operations.ts";
import type { Outcome, Shown } from "./perform.ts";

/** How often whoever has a key asks again while it is not known how the operation ended. */
const ATTEMPTS = 3;

export type Known = Record<Kind, number[]>;
export const nobodyKnown = (): Known => ({ category: [], pet: [], order: [], inventory: [] });

/** `send` carries an operation out once; it is called with the ids of real records. */
export function createClient(send: (operation: Operation) => Promise<Outcome>, known = nobodyKnown()) {
  async function once(operation: Operation): Promise<Outcome> {
    const outcome = await send(operation);
    if (outcome.is !== "done") return outcome;
    const { shown, found = shown ? [shown.id] : [] } = outcome;
    const kind = kindOf(operation);
    const ids = known[kind === "inventory" ? "pet" : kind];
    ids.push(...found.filter((id) => !ids.includes(id)));
    return outcome;
  }
  return {
    known,
    once: (drawn: Operation) => once(resolve(drawn, (kind) => known[kind])),
    async do(drawn: Operation): Promise<Outcome> {
      const operation = resolve(drawn, (kind) => known[kind]);
      for (let attempt = 1; ; attempt++) {
        const outcome = await once(operation);
        if (outcome.is !== "unknown" || operation.key === undefined || attempt === ATTEMPTS) return outcome;
      }
    },
  };
}
export type Client = ReturnType<typeof createClient>;

/**
 * What the known records show now, one after the other: without versions, because a change may be stored in two steps, and
 * with places instead of ids, because ids leave gaps. Undefined for a record that is gone.
 */
export async function leftBehind(known: Known, read: (kind: Kind, id: number) => Promise<Shown | undefined>) {
  const place = (kind: Kind, id: Shown["view"][string]) =>
    id === undefined ? undefined : known[kind].indexOf(Number(id));
  const all = { ...known, inventory: known.pet };
  const left: Record<string, Shown["view"] | undefined> = {};
  for (const [kind, ids] of Object.entries(all) as [Kind, number[]][])
    for (const [index, id] of ids.entries()) {
      const view = (await read(kind, id))?.view;
      left[`${kind} ${index}`] = view && {
        ...view,
        category: place("category", view.category),
        pet: place("pet", view.pet),
      };
    }
  return left;
}
