/**
 * What all engines share about what is asked of them: which index answers a query, after which number a sequence can't go on,
 * and what becomes of documents on their way that can't be read. Such a document affects only itself: access by its `_id` is
 * refused, lists leave it out, and it is logged.
 */
import { checkId, type Fields } from "../document/codec.ts";
import type { Clock, EngineContext } from "../open.ts";
import { Corrupt, type Id, type Key, type ListQuery, type NextIdOptions, type PrefixQuery } from "../port.ts";
import type { Declaration } from "./collections.ts";

/** A checked query: the values that the fields of one index may have, and where the page begins. */
export interface Scan {
  readonly match: Match | undefined;
  readonly after: Id | undefined;
  readonly limit: number;
  readonly order: "asc" | "desc";
}
export interface Match {
  readonly fields: readonly string[];
  /** For each field the values that it may have, each once. */
  readonly values: readonly (readonly Key[])[];
}

export type PrefixScan = PrefixQuery<string>;

/** Throws a TypeError when an indexed field holds a value that can't be queried. */
export function checkKeys(doc: Fields, fields: readonly string[]): void {
  for (const field of fields) if (doc[field] !== undefined) checkKey(doc[field], field);
}

/** Throws a TypeError or RangeError for a query that no index answers. */
export function checkQuery(declaration: Declaration, query: ListQuery<object>): Scan {
  const { where, after, limit, order } = query;
  checkLimit(limit);
  if (after !== undefined) checkId(after);
  return { match: where && matchOf(declaration, where as Fields), after, limit, order };
}

function matchOf(declaration: Declaration, where: Fields): Match {
  const fields = indexOn(declaration, Object.keys(where));
  const anyOf = (asked: unknown) => [...new Set<unknown>(Array.isArray(asked) ? asked : [asked])];
  return { fields, values: fields.map((field) => anyOf(where[field]).map((value) => checkKey(value, field))) };
}

/** The same for texts that begin alike. */
export function checkPrefixQuery(declaration: Declaration, query: PrefixQuery<string>): PrefixScan {
  const { field, prefix, after, limit } = query;
  checkLimit(limit);
  indexOn(declaration, [field]);
  if (!isText(prefix)) throw new TypeError(`No text begins with ${String(prefix)}: use a string of whole characters.`);
  if (after === undefined) return { field, prefix, after, limit };
  const { key, _id } = after;
  checkId(_id);
  if (!isText(key) || !key.startsWith(prefix))
    throw new TypeError(`The list of what begins with "${prefix}" can't go on after ${String(key)}.`);
  return { field, prefix, after: { key, _id }, limit };
}

/** Throws a TypeError for what names no sequence, and for a number that none can go on above. */
export function checkNextId(sequence: string, { above = 0 }: NextIdOptions = {}): void {
  checkId(sequence);
  if (Number.isSafeInteger(above) && Number.isSafeInteger(above + 1)) return;
  throw new TypeError(`${sequence} can't go on above ${above}: use a safe integer that another one follows.`);
}

const isText = (value: unknown): value is string => typeof value === "string" && value.isWellFormed();

/**
 * The least text that comes after all that begin with the prefix, by code points, which is the order of their UTF-8 bytes.
 * Undefined if there is none.
 */
export function beyondPrefix(prefix: string): string | undefined {
  const characters = [...prefix];
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const next = (last.codePointAt(0) as number) + 1;
    // Surrogates are no characters.
    if (next <= 0x10ffff) return characters.join("") + String.fromCodePoint(next === 0xd800 ? 0xe000 : next);
  }
  return undefined;
}

function checkLimit(limit: number): void {
  if (!Number.isSafeInteger(limit) || limit < 1) throw new RangeError(`The limit is ${limit}: use 1 or more.`);
}

function indexOn({ name, indexes }: Declaration, asked: readonly string[]): readonly string[] {
  const fields = Object.values(indexes).find(
    (declared) => declared.length === asked.length && declared.every((field) => asked.includes(field)),
  );
  if (!fields) throw new TypeError(`${name} has no index on exactly (${asked.join(", ")}).`);
  return fields;
}

export const isKey = (value: unknown): value is Key =>
  typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);

function checkKey(value: unknown, field: string): Key {
  if (isKey(value)) return value;
  throw new TypeError(`The indexed field ${field} can't be ${String(value)}: use a value, or leave the field out.`);
}

/** A document is logged once in this time, as lists may meet it with every call, and so many documents at most. */
const REPORT_INTERVAL_MS = 3_600_000;
const MAX_REPORTED = 1_000;

/** Most documents that a list may leave out. More of them are no accident, but the work of another version. */
const MAX_LEFT_OUT = 1_000;

export type Report = (error: Corrupt) => void;

/** Logs documents that can't be read: each once an hour, and at most 1,000 of them an hour. `onCorrupt` is told each time. */
export function reporting(
  log: Pick<EngineContext["log"], "error">,
  clock: Clock,
  onCorrupt: (collection: string | undefined) => void = () => {},
): Report {
  const told = new Set<string>();
  let since = clock();
  return (error) => {
    onCorrupt(error.collection);
    if (clock() >= since + REPORT_INTERVAL_MS) {
      told.clear();
      since = clock();
    }
    if (told.has(error.message) || told.size >= MAX_REPORTED) return;
    told.add(error.message);
    log.error({ err: error }, "a document that can't be read is left out");
  };
}

/** How many documents to read for a page: first as if all were readable, then with room for those that are not. */
export const attemptsAt = (limit: number): readonly number[] => [limit, limit + MAX_LEFT_OUT];

export const tooMany = (collection: string) =>
  new Corrupt(`More than ${MAX_LEFT_OUT} documents in the way of one page of ${collection} can't be read.`);

export function readable<S, T>(stored: readonly S[], read: (one: S) => T, report: Report): T[] {
  return stored.flatMap((one) => {
    try {
      return [read(one)];
    } catch (error) {
      if (!(error instanceof Corrupt)) throw error;
      report(error);
      return [];
    }
  });
}
