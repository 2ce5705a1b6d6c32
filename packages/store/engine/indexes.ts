/** What all engines share about indexes and queries. */

import { checkId, type Fields, type Kind } from "../document/codec.ts";
import type { Id, Key, ListQuery, PrefixQuery } from "../port.ts";

/** The part of a `Schema` that an engine works with. */
export interface Declaration extends Kind {
  readonly indexes: Readonly<Record<string, readonly string[]>>;
  readonly shown?: ((doc: never) => unknown) | undefined;
  readonly tracked?: readonly string[] | undefined;
  readonly noted?: ((doc: never) => string | undefined) | undefined;
}

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

/** A checked query for texts that begin alike. */
export type PrefixScan = PrefixQuery<string>;

/** Throws a TypeError for a collection that not every engine could hold. */
export function checkDeclaration({ name, indexes }: Declaration): void {
  if (!/^[a-z][a-z0-9_]*$/i.test(name)) throw new TypeError(`"${name}" can't be the name of a collection.`);
  for (const [index, fields] of Object.entries(indexes)) {
    if (fields.length === 0) throw new TypeError(`Index ${index} of ${name} has no fields.`);
    if (new Set(fields).size < fields.length) throw new TypeError(`Index ${index} of ${name} names a field twice.`);
  }
}

export const indexedFields = ({ indexes }: Declaration): string[] => [...new Set(Object.values(indexes).flat())];

/** Throws a TypeError when an indexed field holds a value that can't be queried. */
export function checkKeys(doc: Fields, fields: readonly string[]): void {
  for (const field of fields) if (doc[field] !== undefined) checkKey(doc[field], field);
}

/** Throws a TypeError or RangeError for a query that no index answers. */
export function checkQuery(declaration: Declaration, query: ListQuery<object>): Scan {
  const { where, after, limit, order } = query;
  checkLimit(limit);
  if (after !== undefined) checkId(after);
  return { match: where && matchIndex(declaration, where as Fields), after, limit, order };
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

function matchIndex(declaration: Declaration, where: Fields): Match {
  const fields = indexOn(declaration, Object.keys(where));
  return { fields, values: fields.map((field) => anyOf(where[field], field)) };
}

function anyOf(asked: unknown, field: string): Key[] {
  const values = new Set<unknown>(Array.isArray(asked) ? asked : [asked]);
  return [...values].map((value) => checkKey(value, field));
}

export const isKey = (value: unknown): value is Key =>
  typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);

function checkKey(value: unknown, field: string): Key {
  if (isKey(value)) return value;
  throw new TypeError(`The indexed field ${field} can't be ${String(value)}: use a value, or leave the field out.`);
}
