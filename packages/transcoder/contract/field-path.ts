/** Fields of messages that hold one another: `book.author.name`. */
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";

/** The way from a message to a field within it. All but the last hold a message each. */
export type FieldPath = readonly [DescField, ...DescField[]];

/** Reads the name of a field as contracts write it, such as "book.author.name". @throws Error when there is no such field */
export function fieldPath(name: string, message: DescMessage): FieldPath {
  let within: DescMessage | undefined = message;
  const path = name.split(".").map((part): DescField => {
    const field: DescField | undefined = within?.fields.find((candidate) => candidate.name === part);
    if (!field) throw new Error(`${name} is no field of ${message.typeName}`);
    within = field.fieldKind === "message" ? field.message : undefined;
    return field;
  });
  return path as unknown as FieldPath;
}

/** The field that a path leads to. */
export const lastOf = (path: FieldPath): DescField => path[path.length - 1] as DescField;

/** As callers know it, such as "book.author.givenName". */
export const jsonPath = (path: FieldPath): string => path.map(({ jsonName }) => jsonName).join(".");

/** Sets the field within a message, and makes the messages on the way to it that are not there yet. */
export function assignAt(message: Message, path: FieldPath, value: unknown): void {
  let target = message as unknown as Record<string, unknown>;
  for (const [i, { localName, oneof, message: desc }] of path.entries()) {
    if (i === path.length - 1 || !desc) {
      target[oneof?.localName ?? localName] = oneof ? { case: localName, value } : value;
      return;
    }
    const held = oneof ? (target[oneof.localName] as { case?: string; value?: unknown }) : undefined;
    let next = oneof ? (held?.case === localName ? held.value : undefined) : target[localName];
    if (next === undefined) {
      next = create(desc);
      target[oneof?.localName ?? localName] = oneof ? { case: localName, value: next } : next;
    }
    target = next as Record<string, unknown>;
  }
}
