/** Paths, and how their parameters become fields. */
import type { Message } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operation.ts";
import { fieldError } from "../errors/http-error.ts";
import { valueRules } from "../validation/range.ts";
import { scalarFromText } from "./scalars.ts";
import { SchemaError } from "./schema-error.ts";

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
export function pathReader({ segments }: Operation, basePath: string): ReadPath {
  const first = basePath.split("/").length;
  const params = segments.flatMap((segment, i) =>
    "field" in segment
      ? [
          {
            at: first + i,
            field: segment.field,
            read: scalarFromText(segment.field.scalar as never, valueRules(segment.field)),
          },
        ]
      : [],
  );
  return (path, target) => {
    const parts = path.split("/");
    for (const { at, field, read } of params) {
      const part = parts[at] ?? "";
      try {
        if (!isWellEncoded(part))
          throw new SchemaError("has a percent sign that does not begin the encoding of a character");
        (target as unknown as Record<string, unknown>)[field.localName] = read(
          part.includes("%") ? decodeURIComponent(part) : part,
        );
      } catch (error) {
        throw error instanceof SchemaError ? fieldError("INVALID_ID", field.jsonName, error.message) : error;
      }
    }
  };
}
