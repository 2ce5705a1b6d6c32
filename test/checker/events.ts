/**
 * Checks that watchers got what docs/events.md promises, given all writes: each change that a GET could have shown, once,
 * after the token of the previous one, in the order of its record, and nothing else. A resumed stream and its predecessor
 * count as one, so an interruption is no excuse for a gap or a repetition.
 */
import type { Kind } from "../workload/operations.ts";
import type { Shown } from "../workload/perform.ts";

/** A write, as visible from outside: the record, or undefined if there is none. Times are numbers of earlier writes. */
export interface Write {
  readonly kind: Kind;
  readonly id: number;
  readonly shown: Shown | undefined;
}

export interface Told {
  readonly type: "present" | "created" | "updated" | "deleted";
  /** The id of the event. */
  readonly id: string;
  readonly shown: Shown;
  /** When it arrived; infinite if only the order of events is known. */
  readonly at: number;
}

export interface Synced {
  readonly type: "synced";
  readonly at: number;
}

/** One watcher, across all its streams. */
export interface Watch {
  readonly kind: Kind;
  readonly snapshot: boolean;
  /** When it got its first token: no later write may be missing. */
  readonly since: number;
  /** All that it received, in order. */
  readonly told: readonly (Told | Synced)[];
}

/** The records that watchers received, as they were then. */
export const toldTo = (watches: readonly Watch[]): Shown[] =>
  watches.flatMap(({ told }) => told.filter(isEvent).map(({ shown }) => shown));

/** A change that a GET could have shown, and that one event reports. */
interface Change {
  readonly type: "created" | "updated" | "deleted";
  /** For a deletion, the state before it. */
  readonly shown: Shown;
  readonly at: number;
}

type Violation = string | false | undefined;
type Changes = ReadonlyMap<number, readonly Change[]>;

/** All violations, as sentences. To be called when every watcher has received everything. */
export function violationsIn(watches: readonly Watch[], history: readonly Write[]): string[] {
  const found = watches.flatMap((watch): Violation[] => {
    const changes = changesIn(history, watch.kind);
    const events = Map.groupBy(watch.told.filter(isChange), ({ shown }) => shown.id);
    const ids = new Set([...changes.keys(), ...events.keys()]);
    return [
      ...ofSnapshot(watch, changes),
      ...[...ids].flatMap((id) =>
        ofRecord(`${watch.kind} ${id}`, changes.get(id) ?? [], events.get(id) ?? [], watch.since),
      ),
    ];
  });
  return [...found, ...ofIds(watches)].filter((violation) => typeof violation === "string");
}

const isEvent = (told: Told | Synced): told is Told => told.type !== "synced";
const isChange = (told: Told | Synced): told is Told => isEvent(told) && told.type !== "present";
const nameOf = ({ kind, id, version }: Shown) => `${kind} ${id} version ${version}`;

/** The visible changes of a kind. Writes that change nothing visible make no event. */
function changesIn(history: readonly Write[], kind: Kind): Changes {
  const all = new Map<number, Change[]>();
  for (const [at, write] of history.entries()) {
    if (write.kind !== kind) continue;
    const changes = all.get(write.id) ?? [];
    all.set(write.id, changes);
    const last = changes.at(-1);
    const before = last?.type === "deleted" ? undefined : last?.shown;
    const { shown = before } = write;
    if (!shown) continue;
    if (!write.shown) changes.push({ type: "deleted", shown, at });
    else if (!before) changes.push({ type: "created", shown, at });
    else if (shown.version !== before.version) changes.push({ type: "updated", shown, at });
  }
  return all;
}

/** Each change of a record since the watch began has one event, in order. Earlier changes may come first. */
function ofRecord(name: string, changes: readonly Change[], events: readonly Told[], since: number): Violation[] {
  const found: Violation[] = [];
  const places: number[] = [];
  for (const event of events) {
    const { type, shown } = event;
    const place = changes.findIndex((change) => change.type === type && change.shown.version === shown.version);
    const what = `${nameOf(shown)} was told as ${type}`;
    const change = changes[place];
    if (!change) {
      found.push(`${what}, and never was so`);
      continue;
    }
    found.push(...ofContent(what, event, change));
    if (places.includes(place)) found.push(`${what} twice`);
    else if (place < Math.max(...places)) found.push(`${what} after a later change`);
    places.push(place);
  }
  const first = Math.min(...places);
  const missing = changes.filter(({ at }, place) => (at >= since || place > first) && !places.includes(place));
  return [...found, ...missing.map(({ type, shown }) => `${name} was ${type} (version ${shown.version}), untold`)];
}

const ofContent = (what: string, { shown, at }: Told, stored: Change): Violation[] => [
  stored.at >= at && `${what} before it was stored`,
  JSON.stringify(shown.view) !== JSON.stringify(stored.shown.view) &&
    `${what}, as ${JSON.stringify(shown.view)} instead of ${JSON.stringify(stored.shown.view)}`,
];

/** A snapshot has all existing records by ascending id, as they were at some time since the watch began. Changes follow. */
function ofSnapshot({ kind, snapshot, since, told }: Watch, changes: Changes): Violation[] {
  const end = told.findIndex(({ type }) => type === "synced");
  const present = told.filter(isEvent).filter(({ type }) => type === "present");
  if (!snapshot)
    return [(end >= 0 || present.length > 0) && `a watcher of ${kind} was told a snapshot without asking for one`];
  if (end < 0) return [`a watcher of ${kind} was never told that its snapshot is complete`];
  const [before, after] = [told.slice(0, end), told.slice(end + 1)];
  const syncedAt = told[end]?.at ?? 0;
  const ids = new Set(present.map(({ shown }) => shown.id));
  const missing = [...changes].map(([id, ofOne]) => {
    const wasThere = (ofOne.findLast(({ at }) => at < since)?.type ?? "deleted") !== "deleted";
    const isGone = ofOne.some(({ type, at }) => type === "deleted" && at >= since && at < syncedAt);
    return wasThere && !isGone && !ids.has(id) && `${kind} ${id} is missing in a snapshot`;
  });
  return [
    ...before.map((one) => isChange(one) && `${nameOf(one.shown)} was told as ${one.type} within a snapshot`),
    ...after.map((one) => !isChange(one) && `a watcher of ${kind} was told "${one.type}" after its snapshot`),
    ...present.map(
      ({ shown }, i) => shown.id <= (present[i - 1]?.shown.id ?? 0) && `${nameOf(shown)} is not in order in a snapshot`,
    ),
    ...present.flatMap((event) => ofPresent(event, changes.get(event.shown.id) ?? [], since)),
    ...missing,
  ];
}

function ofPresent(event: Told, changes: readonly Change[], since: number): Violation[] {
  const what = `${nameOf(event.shown)} was told as present`;
  const place = changes.findIndex(({ type, shown }) => type !== "deleted" && shown.version === event.shown.version);
  const change = changes[place];
  if (!change) return [`${what}, and never was so`];
  const next = changes[place + 1];
  return [...ofContent(what, event, change), next && next.at < since && `${what}, and was ${next.type} before`];
}

/** An id belongs to one change, and a change has one id for all watchers. A record of a snapshot may have its change's id. */
function ofIds(watches: readonly Watch[]): Violation[] {
  const meanings = new Map<string, string>();
  const idsOf = new Map<string, string>();
  return watches
    .flatMap(({ told }) => told.filter(isEvent))
    .flatMap(({ type, id, shown }) => {
      const meaning = `${type === "deleted" ? "the end of " : ""}${nameOf(shown)}`;
      const other = meanings.get(id) ?? meaning;
      meanings.set(id, other);
      const known = idsOf.get(meaning) ?? id;
      if (type !== "present") idsOf.set(meaning, known);
      return [
        other !== meaning && `the event ${id} was ${other}, and then ${meaning}`,
        type !== "present" && known !== id && `${meaning} was the event ${known}, and then ${id}`,
      ];
    });
}
