/** Request targets: their path, and how its parameters become fields. */
import type { Message } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operations.ts";
import { HttpError } from "../errors/http-error.ts";
import { scalarFromText } from "./scalars.ts";
import { SchemaError } from "./schema-error.ts";

/** Path and query of a request target as they were sent; the form with scheme and host (RFC 9112, 3.2.2) is cut down. */
export function splitTarget(target: string): { path: string; query: string } {
  if (target.startsWith("/") && !target.includes("#")) {
    const at = target.indexOf("?"); // nearly always: no scheme, no host, no fragment
    return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at + 1) };
  }
  const [, path = "", query = ""] = /^(?:https?:\/\/[^/?#]*)?([^?#]*)\??([^#]*)/is.exec(target) ?? [];
  return { path: path === "" ? "/" : path, query };
}

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
      ? [{ at: first + i, field: segment.field, read: scalarFromText(segment.field.scalar as never) }]
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
        throw error instanceof SchemaError ? new HttpError("INVALID_ID", `${field.jsonName}: ${error.message}`) : error;
      }
    }
  };
}
