/** A client that performs one operation at a time and remembers the records that it has seen. */
import { type Kind, kindOf, type Operation, resolve } from "./operations.ts";
import type { Outcome, Shown } from "./perform.ts";

/** How often an operation with an idempotency key is sent while its outcome is unknown. */
const ATTEMPTS = 3;

export type Known = Record<Kind, number[]>;
export const nobodyKnown = (): Known => ({ category: [], pet: [], order: [], inventory: [] });

/** `send` performs an operation once; it is called with the ids of real records. */
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
 * The present state of the known records. It has no versions, because a change may be stored in two steps, and positions
 * instead of ids, because ids have gaps. Undefined for a record that is gone.
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
