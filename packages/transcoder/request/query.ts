/** Query strings: what they hold, and how parameters become fields. */
import { type DescField, type Message, ScalarType } from "@bufbuild/protobuf";
import { type Codec, EXACT } from "../contract/codec.ts";
import { byName, isClamped } from "../contract/fields.ts";
import type { Operation } from "../contract/operation.ts";
import { fieldError, HttpError } from "../errors/http-error.ts";
import { excerpt } from "../validation/excerpt.ts";
import { givenAs, SchemaError } from "./schema-error.ts";
import { textReader } from "./text.ts";

export type Parameters = readonly (readonly [name: string, value: string])[];

/** Splits what stands behind the question mark. @throws HttpError INVALID_QUERY for bad percent-encoding. */
export function parseQuery(text: string): Parameters {
  if (text === "") return [];
  return text
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const at = pair.indexOf("=");
      return at < 0 ? [decode(pair), ""] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
    });
}

export const formatQuery = (parameters: Parameters): string =>
  parameters.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new HttpError(
      "INVALID_QUERY",
      "The query has a percent sign that does not begin the encoding of a character.",
    );
  }
}

export type ReadQuery = (parameters: Parameters, target: Message, strict: boolean) => void;

/**
 * Compiles the reader of an operation's parameters. Repeatable ones may also be separated by commas, but for texts, in which a
 * comma is one. Unknown ones are ignored, or errors when `strict`.
 */
export function queryReader(
  { query, paging, stream }: Operation,
  jsonNamesOnly: boolean,
  codec: Codec = EXACT,
): ReadQuery {
  const mayBeEmpty: readonly unknown[] = [paging?.pageToken, stream?.resume];
  const known = byName(query, jsonNamesOnly);
  const readers = new Map(query.map((field) => [field, valueReader(field, codec)]));
  return (parameters, target, strict) => {
    const seen = new Map<DescField, string>();
    for (const [name, value] of parameters) {
      const field = known.get(name);
      const read = field && readers.get(field);
      if (!read) {
        if (strict) throw fieldError("UNKNOWN_FIELD", excerpt(name), "is not known here");
        continue;
      }
      const wrong = (problem: string, code = "INVALID_QUERY") => fieldError(code, name, problem);
      const before = seen.get(field);
      if (before !== undefined && before !== name) throw wrong(givenAs(before));
      if (before !== undefined && field.fieldKind !== "list") throw wrong("must not be given twice");
      seen.set(field, name);
      if (value === "" && mayBeEmpty.includes(field)) continue;
      try {
        assign(target, field, field.fieldKind === "list" ? itemsIn(value, field).map(read) : read(value));
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        throw wrong(error.message, field === paging?.pageToken ? "INVALID_PAGE_TOKEN" : "INVALID_QUERY");
      }
    }
  };
}

const itemsIn = (value: string, { scalar }: DescField): string[] =>
  scalar === ScalarType.STRING ? [value] : value.split(",");

function valueReader(field: DescField, codec: Codec): (text: string) => unknown {
  const read = textReader(field, codec, isClamped(field));
  return (text) => {
    if (text === "") throw new SchemaError("must not be empty");
    return read(text);
  };
}

function assign(target: Message, { fieldKind, localName, oneof }: DescField, value: unknown): void {
  const members = target as unknown as Record<string, unknown>;
  if (fieldKind === "list") for (const item of value as unknown[]) (members[localName] as unknown[]).push(item);
  else if (!oneof) members[localName] = value;
  else {
    if ((members[oneof.localName] as { case?: string }).case !== undefined)
      throw new SchemaError(
        `must not be given together with another of ${oneof.fields.map((f) => f.jsonName).join(", ")}`,
      );
    members[oneof.localName] = { case: localName, value };
  }
}
