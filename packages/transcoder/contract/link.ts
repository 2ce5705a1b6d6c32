/** Links that are filled in from a message, such as the Location of what was created. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";

/**
 * Compiles a link such as "/books?isbn={isbn}" to a function that fills it in from a message. Slashes of a value stay slashes
 * in a variable that has several segments, as in "/v1/{name=shelves/*}".
 */
export function linkTo(template: string, message: DescMessage): (from: object) => string {
  const parts = template.split(/\{([^{}]*)\}/).map((part, i) => {
    if (i % 2 === 0) return part;
    const [name = "", segments = ""] = part.split("=");
    return { field: fieldNamed(name, message), isMulti: /\/|\*\*/.test(segments) };
  });
  return (from) =>
    parts
      .map((part) => {
        if (typeof part === "string") return part;
        const text = addressText((from as Record<string, unknown>)[part.field.localName] ?? "");
        return part.isMulti ? text.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(text);
      })
      .join("");
}

/** A scalar as it stands in addresses: bytes in base64url (RFC 4648, 5), for a slash would end a part of a path. */
export const addressText = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64url") : String(value);

function fieldNamed(name: string, message: DescMessage): DescField {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`{${name}} is no field of ${message.typeName}`);
  if (field.fieldKind !== "scalar" || field.oneof) throw new Error(`{${name}} must be a scalar outside a oneof`);
  return field;
}
