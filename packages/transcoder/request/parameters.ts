/** The path and the query of a request: what they hold, and how their parts become fields. */
import { type DescField, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Codec } from "../contract/codec.ts";
import { assignAt, heldIn, holderOf, jsonPath, keptOut, lastOf } from "../contract/field-path.ts";
import { isClamped } from "../contract/fields.ts";
import type { Operation } from "../contract/operation.ts";
import { parameterFinder, type QueryParameter } from "../contract/query-parameters.ts";
import { remembered } from "../contract/remembered.ts";
import { decoded, isRest } from "../contract/template.ts";
import { excerpt, fieldError, HttpError } from "../errors/http-error.ts";
import { givenAs, SchemaError } from "../errors/violations.ts";
import { keyRules } from "../validation/range.ts";
import type { InputOptions } from "./input.ts";
import { scalarFromText, textReader } from "./scalars.ts";

/** Whether percent signs all begin the encoding of a character. */
export const isWellEncoded = (path: string): boolean => !path.includes("%") || decoded(path) !== undefined;

/**
 * Compiles the reader of a path that is known to match the operation's template behind `basePath`.
 *
 * @throws HttpError INVALID_ID
 */
export function pathReader({ template }: Pick<Operation, "template">, basePath: string, codec: Codec) {
  const first = basePath.split("/").length;
  const { segments, customVerb } = template;
  const rest = segments.findIndex(isRest);
  const variables = template.variables.map(({ field: path, from, to, isMulti }) => {
    const field = lastOf(path);
    const isNested = path.length > 1 || field.oneof !== undefined;
    return { path, field, isNested, from, to, isMulti, read: textReader(field, codec) };
  });
  return (path: string, target: Message): void => {
    const parts = withoutVerb(path, customVerb).split("/");
    /** How many more segments than one "**" stands for: what follows it is so much farther behind. */
    const more = rest < 0 ? 0 : parts.length - first - segments.length;
    const placeOf = (at: number) => first + at + (at > rest ? more : 0);
    for (const { path, field, isNested, from, to, isMulti, read } of variables) {
      const part = isMulti ? parts.slice(placeOf(from), placeOf(to)).join("/") : (parts[placeOf(from)] ?? "");
      try {
        const text = part.includes("%") ? decoded(isMulti ? keepSlashes(part) : part) : part;
        if (text === undefined)
          throw new SchemaError("has a percent sign that does not begin the encoding of a character");
        const value = read(text);
        if (isNested) assignAt(target, path, value);
        else (target as unknown as Record<string, unknown>)[field.localName] = value;
      } catch (error) {
        throw error instanceof SchemaError ? fieldError("INVALID_ID", jsonPath(path), error.message) : error;
      }
    }
  };
}

const withoutVerb = (path: string, customVerb: string): string =>
  customVerb === "" ? path : path.slice(0, path.lastIndexOf(":"));

/** Keeps "%2F" through decoding, by encoding its percent sign: as "/" it would look like a slash between segments. */
const keepSlashes = (part: string): string => part.replaceAll(/%(?=2f)/gi, "%25");

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
  const found = decoded(text.replaceAll("+", " "));
  if (found !== undefined) return found;
  throw new HttpError("INVALID_QUERY", "The query has a percent sign that does not begin the encoding of a character.");
}

/**
 * Compiles the reader of an operation's parameters. Repeatable ones may also be separated by commas, but for texts, in which a
 * comma is one. Unknown ones are ignored, or errors when `strict`.
 */
export function queryReader(operation: Operation, options: InputOptions) {
  const { query, paging, stream, maskParameter } = operation;
  const { jsonNamesOnly, codec, pathFieldsFromPathOnly = false, maskFromBodyOnly = false } = options;
  const mayBeEmpty: readonly unknown[] = [paging?.pageToken, stream?.resume];
  const mask = maskParameter && !maskFromBodyOnly ? [maskParameter] : [];
  const find = parameterFinder({ ...operation, query: [...query, ...mask] }, jsonNamesOnly);
  // Made when they are asked for: of many parameters a request has few.
  const readerOf = remembered((field: DescField) => valueReader(field, codec));
  return (parameters: Parameters, target: Message, strict: boolean): void => {
    const seen = new Map<string, string>();
    for (const [name, value] of parameters) {
      const found = find(name);
      if (!found || (found.isInPath && pathFieldsFromPathOnly)) {
        if (strict) throw fieldError("UNKNOWN_FIELD", excerpt(name), "is not known here");
        continue;
      }
      const { path, key, isInPath } = found;
      if (isInPath) continue;
      const field = lastOf(path);
      const wrong = (problem: string, code = "INVALID_QUERY") => fieldError(code, excerpt(name), problem);
      const its = path.length === 1 && key === undefined ? field.name : contractName(found);
      const before = seen.get(its);
      if (before !== undefined && before !== name) throw wrong(givenAs(excerpt(before)));
      if (before !== undefined && field.fieldKind !== "list") throw wrong("must not be given twice");
      seen.set(its, name);
      if (value === "" && mayBeEmpty.includes(field)) continue;
      try {
        const taken = keptOut(target, path)?.oneof;
        if (taken)
          throw new SchemaError(
            `must not be given together with another of ${taken.fields.map((f) => f.jsonName).join(", ")}`,
          );
        readerOf(field)(value, target, found);
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        throw wrong(error.message, field === paging?.pageToken ? "INVALID_PAGE_TOKEN" : "INVALID_QUERY");
      }
    }
  };
}

const contractName = ({ path, key }: QueryParameter): string =>
  path.map(({ name }) => name).join(".") + (key === undefined ? "" : `[${key}]`);

/** Reads the value of a parameter into the field that it names. */
type ReadValue = (text: string, target: Message, parameter: QueryParameter) => void;

function valueReader(field: DescField, codec: Codec): ReadValue {
  if (field.fieldKind === "map") return entryReader(field, codec);
  const readText = textReader(field, codec, isClamped(field));
  const read = (text: string) => {
    if (text === "" && !codec.isLenient) throw new SchemaError("must not be empty");
    return readText(text);
  };
  if (field.fieldKind !== "list") return (text, target, { path }) => assignAt(target, path, read(text));
  const isSplit = field.scalar !== ScalarType.STRING && !field.message;
  return (text, target, { path }) => {
    const list = heldIn(holderOf(target, path), field) as unknown[];
    for (const item of isSplit ? text.split(",") : [text]) list.push(read(item));
  };
}

function entryReader(field: DescField & { readonly fieldKind: "map" }, codec: Codec): ReadValue {
  const readKey = scalarFromText(field.mapKey, keyRules(field));
  const readItem = textReader(field, codec);
  return (text, target, { path, key }) => {
    if (key === undefined) throw new SchemaError(`must have a key in brackets: ${jsonPath(path)}[key]=value`);
    if (text === "" && !codec.isLenient) throw new SchemaError("must not be empty");
    const property = String(readKey(key));
    const entries = heldIn(holderOf(target, path), field) as object;
    if (Object.hasOwn(entries, property)) throw new SchemaError("must not be given twice");
    // "__proto__" is a key like any other.
    const value = readItem(text);
    Object.defineProperty(entries, property, { value, configurable: true, enumerable: true, writable: true });
  };
}
