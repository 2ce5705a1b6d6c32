/** Tells what happened in a history, as a story of some ten lines: about the records that its violations name, and theirs. */

import type { Operation } from "../workload/operations.ts";
import type { Outcome } from "../workload/perform.ts";
import type { Stored } from "./disk.ts";
import type { Fault } from "./fault-injector.ts";
import type { Event } from "./histories/history.ts";

type Wrote = Extract<Event, { is: "wrote" }>;

const MAX_LINES = 24;
/** What no story is about. */
const SILENT: readonly string[] = [
  ...["_id", "rev", "version", "format", "caller", "visible", "facts", "name", "shipDate"],
  ...["received", "statusRev", "firstStatus", "member", "hasReservations"],
];
const kindBy: Readonly<Record<string, string>> = { categories: "category", pets: "pet", orders: "order" };

export function story(events: readonly Event[], violations: readonly string[]): string[] {
  const about = recordsIn(events, violations);
  const begin = events.findIndex((event) => event.is === "asked" && event.client > 0);
  const told = events.filter((event) => matters(event, about));
  const before = told.filter((event) => events.indexOf(event) < begin);
  const lines = [...beforeAll(before), ...merged(told.slice(before.length)).map(lineOf)];
  const left = lines.length - MAX_LINES;
  if (left > 0) lines.splice(MAX_LINES / 2, left, `… ${left} more`);
  return [...lines, ...[...new Set(violations)].map((violation) => `So: ${violation}.`)];
}

/** What every history begins with, as it was last shown. */
function beforeAll(events: readonly Event[]): string[] {
  const records = new Map<string, string>();
  for (const event of events)
    if (event.is === "answered" && event.outcome.is === "done" && event.outcome.shown) {
      const { kind, id, view } = event.outcome.shown;
      records.set(`${kind} ${id}`, `${kind} ${id} ${JSON.stringify(view)}`);
    }
  return records.size === 0 ? [] : [`before: ${[...records.values()].join(", ")}`];
}

/** The names of the records that the violations are about, and of those that have to do with them. All if they name none. */
function recordsIn(events: readonly Event[], violations: readonly string[]): ReadonlySet<string> | "all" {
  const named = violations.join("\n").matchAll(/\b(\w+?) (\d+)\b/g);
  const about = new Set([...named].map(([, kind = "", id]) => `${kindBy[kind] ?? kind} ${id}`));
  for (const event of events) {
    if (event.is === "answered" && event.outcome.is === "done" && event.outcome.shown) {
      const { kind, id } = event.outcome.shown;
      const { key, mark } = event.operation;
      if (violations.some((one) => one.includes(`mark ${mark}`) || (key !== undefined && one.includes(key))))
        about.add(`${kind} ${id}`);
    }
    if (event.is === "wrote" && event.collection === "orders" && about.has(nameOf(event)) && "petId" in event.after)
      about.add(`pet ${event.after.petId}`);
  }
  for (const name of [...about]) {
    if (name.startsWith("pet ")) about.add(name.replace("pet", "inventory"));
    if (name.startsWith("inventory ")) about.add(name.replace("inventory", "pet"));
    if (name.startsWith("category ")) about.add(name.replace("category", "deletion_guards"));
  }
  return [...about].some((name) => /^(category|pet|order|inventory) /.test(name)) ? about : "all";
}

function matters(event: Event, about: ReadonlySet<string> | "all"): boolean {
  switch (event.is) {
    case "happened":
      return event.what === "jump of time";
    case "struck":
      return true;
    case "wrote":
      return about === "all" || about.has(nameOf(event));
    // What is left of a history that was made small is there for a reason.
    case "asked":
      return event.client > 0;
    case "answered": {
      const shown = event.outcome.is === "done" ? event.outcome.shown : undefined;
      return event.client > 0 || about === "all" || (shown !== undefined && about.has(`${shown.kind} ${shown.id}`));
    }
  }
}

/** Several writes to a record with nothing between them are one. */
function merged(events: readonly Event[]): Event[] {
  const all: Event[] = [];
  for (const event of events) {
    const last = all.at(-1);
    if (event.is === "wrote" && last?.is === "wrote" && nameOf(last) === nameOf(event))
      all[all.length - 1] = { ...event, before: last.before };
    else if (event.is !== "wrote" || changesOf(event) !== "") all.push(event);
  }
  return all;
}

const nameOf = ({ collection, after }: Wrote): string => `${kindBy[collection] ?? collection} ${after._id}`;

function lineOf(event: Event): string {
  switch (event.is) {
    case "asked":
      return `client ${event.client} asks: ${asked(event.operation)}`;
    case "answered":
      return `client ${event.client} ${answered(event.operation, event.outcome)}`;
    case "wrote":
      return `  stored: ${nameOf(event)}: ${changesOf(event)}`;
    case "struck":
      return `  fault: ${faults[event.fault]} (${event.where})`;
    case "happened":
      return `  ${event.what}`;
  }
}

const faults: Readonly<Record<Fault, string>> = {
  crash: "a process dies",
  stop: "a process is stopped in good order",
  lost: "a call is lost",
  late: "a call arrives when its caller has given up",
  unanswered: "an answer is lost",
  twice: "a call arrives now, and once more later",
};

function asked({ do: what, mark, ...rest }: Operation): string {
  const details = Object.entries(rest).filter(([, value]) => value !== undefined);
  return [what, ...details.map(([name, value]) => `${name} ${value}`), `(mark ${mark})`].join(" ");
}

function answered({ do: what }: Operation, outcome: Outcome): string {
  if (outcome.is === "unknown") return `is not told whether ${what} was done`;
  if (outcome.is === "refused") return `is refused ${what}: ${outcome.reason}`;
  const { shown, found } = outcome;
  if (!shown) return `is told that ${what} was done${found ? `: ${found.join(", ") || "nothing there"}` : ""}`;
  return `is told that ${what} was done: ${shown.kind} ${shown.id} ${JSON.stringify(shown.view)}`;
}

/** The members that differ, as they are now and were before. */
function changesOf({ after, before }: Wrote): string {
  const names = Object.keys({ ...before, ...after }).filter((name) => !SILENT.includes(name));
  return names
    .filter((name) => text(after, name) !== text(before, name))
    .filter((name) => before || !NOTHING.includes(text(after, name) ?? ""))
    .map((name) => `${name} ${text(after, name)}${before ? ` (was ${text(before, name)})` : ""}`)
    .join(", ");
}
/** Not told of a document that is new. */
const NOTHING: readonly string[] = ["none", "0", "absent", '{"op":0,"outcome":"OK"}'];
const text = (doc: Stored | undefined, name: string): string | undefined => {
  const value = doc?.[name];
  return value === "" ? "none" : typeof value === "string" ? value : (JSON.stringify(value) ?? "absent");
};
