/** Paths, and how their parts become fields. */
import type { Message } from "@bufbuild/protobuf";
import type { Codec } from "../contract/codec.ts";
import { assignAt, jsonPath, lastOf } from "../contract/field-path.ts";
import type { Operation } from "../contract/operation.ts";
import { isRest } from "../contract/template.ts";
import { fieldError } from "../errors/http-error.ts";
import { SchemaError } from "./schema-error.ts";
import { textReader } from "./text.ts";

/** Whether percent signs all begin the encoding of a character. */
export function isWellEncoded(path: string): boolean {
  if (!path.includes("%")) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

export type ReadPath = (path: string, target: Message) => void;

/**
 * Compiles the reader of a path that is known to match the operation's template behind `basePath`.
 *
 * @throws HttpError INVALID_ID
 */
export function pathReader({ template }: Pick<Operation, "template">, basePath: string, codec: Codec): ReadPath {
  const first = basePath.split("/").length;
  const { segments, customVerb } = template;
  const rest = segments.findIndex(isRest);
  const variables = template.variables.map(({ field: path, from, to, isMulti }) => {
    const field = lastOf(path);
    const isNested = path.length > 1 || field.oneof !== undefined;
    return { path, field, isNested, from, to, isMulti, read: textReader(field, codec) };
  });
  return (path, target) => {
    const parts = withoutVerb(path, customVerb).split("/");
    /** How many more segments than one "**" stands for: what follows it is so much farther behind. */
    const more = rest < 0 ? 0 : parts.length - first - segments.length;
    const placeOf = (at: number) => first + at + (at > rest ? more : 0);
    for (const { path, field, isNested, from, to, isMulti, read } of variables) {
      const part = isMulti ? parts.slice(placeOf(from), placeOf(to)).join("/") : (parts[placeOf(from)] ?? "");
      try {
        if (!isWellEncoded(part))
          throw new SchemaError("has a percent sign that does not begin the encoding of a character");
        const value = read(part.includes("%") ? decodeURIComponent(isMulti ? keepSlashes(part) : part) : part);
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
