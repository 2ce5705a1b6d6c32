import type { DescField, DescMessage } from "@bufbuild/protobuf";

/** One part of a path between slashes: fixed text, or a field that a request fills in. */
export type Segment = { readonly literal: string } | { readonly field: DescField };

/**
 * Reads a path template of google.api.http. Of its grammar, fixed segments and `{field}` are served; `{field=*}` is the same.
 *
 * @throws Error when the template uses more than that, or names a field that the message does not have.
 */
export function parseTemplate(template: string, message: DescMessage): Segment[] {
  if (!template.startsWith("/")) throw new Error(`the path "${template}" must start with a slash`);
  const names = new Set<string>();
  return template
    .slice(1)
    .split("/")
    .map((part) => {
      const name = /^\{(\w+)(?:=\*)?\}$/.exec(part)?.[1];
      if (name !== undefined) {
        if (names.has(name)) throw new Error(`the path "${template}" has {${name}} twice`);
        names.add(name);
        return { field: fieldNamed(name, message) };
      }
      // Clients take dots for the way up.
      if (/^(?!\.\.?$)[\w.~-]+$/.test(part)) return { literal: part };
      throw new Error(`the path "${template}" has a segment "${part}" that is neither plain text nor {field}`);
    });
}

/** The template as callers know it: fields by their JSON names, as in "/shelves/{shelfId}". */
export const showTemplate = (segments: readonly Segment[]): string =>
  segments.map((segment) => `/${"field" in segment ? `{${segment.field.jsonName}}` : segment.literal}`).join("");

/** Compiles a link such as "/books?isbn={isbn}" to a function that fills it in from a message. */
export function linkTo(template: string, message: DescMessage): (from: object) => string {
  const parts = template.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? fieldNamed(part, message) : part));
  return (from) =>
    parts
      .map((part) =>
        typeof part === "string"
          ? part
          : encodeURIComponent(addressText((from as Record<string, unknown>)[part.localName] ?? "")),
      )
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
