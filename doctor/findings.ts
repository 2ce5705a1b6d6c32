/** What the doctor finds, what each of it means, and how people are told. Pure. */
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

/** For what is made good by whoever opens the store, as indexes are, or by the petstore's own workers. */
export const byItself: Mend = async () => {};

export const nameOf = ({ invariant, ids, of }: Finding): string => JSON.stringify([invariant, ids, of]);

export const shownOf = ({ invariant, ids, detail, repair }: Finding) => ({ invariant, ids, detail, repair });

/** Collects findings. More than `most` of a kind are only counted, so that they always fit into the memory. */
export function createFindings(most = 1_000) {
  const kinds = new Map<Finding["invariant"], { readonly named: Finding[]; count: number }>();
  return {
    add(found: readonly Finding[]): void {
      for (const one of found) {
        const kind = kinds.get(one.invariant) ?? { named: [], count: 0 };
        kinds.set(one.invariant, kind);
        if (kind.count++ < most) kind.named.push(one);
      }
    },
    /** What was found, in the order of the invariants; at the end of each kind, how many more there are. */
    list: (): Finding[] =>
      invariantNames.flatMap((invariant) => {
        const { named, count } = kinds.get(invariant) ?? { named: [], count: 0 };
        const { repair = null } = named[0] ?? {};
        const detail = `There are ${count - named.length} more of these.`;
        return count === named.length ? named : [...named, { invariant, ids: [], detail, repair }];
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

/** The doctor can't look, for the reason in the message, which says what to do. */
export class CannotLook extends Error {
  override readonly name = "CannotLook";
  /** Whether that is because MongoDB is of a version or kind that the petstore can't use. */
  readonly isVersion: boolean;
  constructor(message: string, isVersion = false) {
    super(message);
    this.isVersion = isVersion;
  }
}

/** Findings of a kind that are written out. */
const MAX_LINES = 20;
const REPAIR = "npm run -s doctor -- --repair";

export function report(found: readonly Finding[]): string {
  if (found.length === 0) return "Nothing found: all is as it should be.\n";
  const kinds = [...Map.groupBy(found, ({ invariant, repair }) => `${invariant} ${repair}`).values()];
  return `${kinds.map(section).join("\n")}\n${summary(found)}\n`;
}

function section(kind: readonly Finding[]): string {
  const [{ invariant, repair }] = kind as readonly [Finding];
  const lines = kind
    .slice(0, MAX_LINES)
    .map(({ ids, detail }) => `  ${[ids.join(" "), detail].filter(Boolean).join("  ")}`);
  const more = kind.length > MAX_LINES ? [`  and ${kind.length - MAX_LINES} more: --json names them`] : [];
  const next =
    repair === "safe" && invariant !== "stuck-pending" ? `Stop the petstore, then: ${REPAIR}` : advice[invariant];
  return [invariant, ...lines, ...more, ...(next ? [`  -> ${next}`] : [])].join("\n");
}

function summary(found: readonly Finding[]): string {
  const count = (repair: Finding["repair"]) => found.filter((one) => one.repair === repair).length;
  const parts = [
    [count("safe"), "safe to repair"],
    [count("manual"), "for somebody to decide"],
    [count(null), "around the petstore"],
  ] as const;
  const named = parts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return `\nFound: ${named.join(", ")}. docs/doctor.md says what each means.`;
}
