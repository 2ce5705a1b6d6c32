/** What the doctor finds, and what each of it means. Pure. */
import type { Id } from "@petstore/store/port";
import type { Mending } from "./mending.ts";

/** What must hold. docs/doctor.md says what each means, and what mends it. */
export const invariantNames = [
  ...(["stock-sum", "reservation-without-order", "order-without-reservation"] as const),
  ...(["pet-without-entry", "entry-without-pet", "category-missing", "closed-guard"] as const),
  ...(["key-dangling", "sequence-behind", "stuck-pending", "status-stale"] as const),
  ...(["corrupt-document", "index-missing", "identity-mixed"] as const),
] as const;
export type Invariant = (typeof invariantNames)[number];

/** For people: what to do where no repair is safe, or none is needed. */
export const advice: { readonly [K in Finding["invariant"]]?: string } = {
  "stock-sum": "Count the units and set the quantity (PATCH /store/inventory/{petId}), or restore a backup.",
  "order-without-reservation":
    "Restock the pet, then stop the petstore and repair. An order that is open can be deleted instead.",
  "pet-without-entry": "Delete the pet, or restore a backup.",
  "entry-without-pet": "Restore a backup that has the pet.",
  "category-missing": "Move the pet to another category (PATCH /pets/{petId}).",
  "stuck-pending":
    "The petstore finishes it while it runs. If it stays, the log of that service says what is in the way.",
  "corrupt-document": "Restore a backup: nothing else has what it held.",
  "identity-mixed": "Restore all files, or all databases, from one backup.",
};

/** What can be wrong around a petstore. */
export type Surrounding = `env-${"configuration" | "ports" | "clock" | "disk" | "version" | "write-concern" | "oplog"}`;

export const around = (what: Surrounding, detail: string, ids: readonly string[] = []): Finding => ({
  invariant: what,
  ids,
  detail,
  repair: null,
});

/** Changes what is stored, through the petstore's own rules. Each of them judges what it finds then. */
export type Mend = (stores: Mending) => Promise<unknown>;

export interface Finding {
  readonly invariant: Invariant | Surrounding;
  /** Such as "pet/7": what is wrong first, then what it does not fit. */
  readonly ids: readonly string[];
  /** What is wrong, in a sentence. */
  readonly detail: string;
  /** "safe": nothing is lost by it, and the petstore would do the same. */
  readonly repair: "safe" | "manual" | null;
  /** Of something that is bound to change: seen with another one of these later, it is another finding. */
  readonly of?: Id | undefined;
  readonly mend?: Mend | undefined;
}

/** A finding that `mend` makes good. Without one somebody has to decide. */
export const finding = (
  invariant: Invariant,
  ids: readonly string[],
  detail: string,
  { mend, of }: Pick<Finding, "mend" | "of"> = {},
): Finding => ({ invariant, ids, detail, repair: mend ? "safe" : "manual", mend, of });

/** For what the petstore's own workers make good. */
export const byWorkers: Mend = async () => {};

/** For indexes: whoever opens the store builds them. */
export const byOpening: Mend = async () => {};

/** The same for two findings of the same. */
export const nameOf = ({ invariant, ids, of }: Finding): string => JSON.stringify([invariant, ids, of]);

/** What is written of a finding for machines. */
export const shownOf = ({ invariant, ids, detail, repair }: Finding) => ({ invariant, ids, detail, repair });

/** Collects findings. More than `most` of a kind are only counted, so that they always fit into the memory. */
export function createFindings(most = 1_000) {
  const all = new Map<Finding["invariant"], Finding[]>();
  const counts = new Map<Finding["invariant"], number>();
  return {
    add(found: readonly Finding[]): void {
      for (const one of found) {
        const named = all.get(one.invariant) ?? [];
        all.set(one.invariant, named);
        counts.set(one.invariant, (counts.get(one.invariant) ?? 0) + 1);
        if (named.length < most) named.push(one);
      }
    },
    /** What was found, in the order of the invariants; at the end of each kind, how many more there are. */
    list: (): Finding[] =>
      invariantNames.flatMap((invariant) => {
        const named = all.get(invariant) ?? [];
        const more = (counts.get(invariant) ?? 0) - named.length;
        const { repair = null } = named[0] ?? {};
        return more === 0
          ? named
          : [...named, { invariant, ids: [], detail: `There are ${more} more of these.`, repair }];
      }),
  };
}
export type Findings = ReturnType<typeof createFindings>;

/** How many are named of each invariant, 0 for those that hold. */
export function figuresOf(found: readonly Finding[]): ReadonlyMap<Invariant, number> {
  const named = Map.groupBy(found, ({ invariant, ids }) => ids.length > 0 && invariant);
  return new Map(invariantNames.map((name) => [name, named.get(name)?.length ?? 0]));
}

/** Those that were there at an earlier look, too. */
export function seenTwice(earlier: readonly Finding[], later: readonly Finding[]): Finding[] {
  const names = new Set(earlier.map(nameOf));
  const twice = later.filter((found) => names.has(nameOf(found)));
  // How many more there are is of no use where none of those that are named is left.
  const named = new Set(twice.filter(({ ids }) => ids.length > 0).map(({ invariant }) => invariant));
  return twice.filter(({ invariant, ids, repair }) => ids.length > 0 || repair === null || named.has(invariant));
}
