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

export const lastOf = (path: FieldPath): DescField => path[path.length - 1] as DescField;

/** As callers know it, such as "book.author.givenName". */
export const jsonPath = (path: FieldPath): string => path.map(({ jsonName }) => jsonName).join(".");

/** The message that holds the field at the end of a path. It and those on the way to it are made where they are not there yet. */
export function holderOf(message: Message, path: FieldPath): Message {
  let holder = message;
  for (const field of path.slice(0, -1)) {
    const held = heldIn(holder, field) ?? create(field.message as DescMessage);
    setValue(holder, field, held);
    holder = held as Message;
  }
  return holder;
}

/** The message that holds the field at the end of a path; undefined where it, or one on the way to it, is not there. */
export function heldBy(message: Message, path: FieldPath): Message | undefined {
  let holder: Message | undefined = message;
  for (const field of path.slice(0, -1)) holder = holder && (heldIn(holder, field) as Message | undefined);
  return holder;
}

/** Sets the field within a message, and makes the messages on the way to it that are not there yet. */
export function assignAt(message: Message, path: FieldPath, value: unknown): void {
  setValue(holderOf(message, path), lastOf(path), value);
}

/** What a field holds; undefined also where another of its oneof is set. */
export function heldIn(message: Message, { localName, oneof }: DescField): unknown {
  const members = message as unknown as Record<string, unknown>;
  if (!oneof) return members[localName];
  const choice = members[oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return choice.case === localName ? choice.value : undefined;
}

function setValue(message: Message, { localName, oneof }: DescField, value: unknown): void {
  const members = message as unknown as Record<string, unknown>;
  members[oneof?.localName ?? localName] = oneof ? { case: localName, value } : value;
}

/** The field of a oneof on the way that another field of that oneof keeps from being set; undefined where none does. */
export function keptOut(message: Message, path: FieldPath): DescField | undefined {
  let holder: Message | undefined = message;
  for (const field of path) {
    const { oneof } = field;
    const choice = oneof && (holder as unknown as Record<string, { case?: string }>)[oneof.localName];
    if (choice?.case !== undefined && choice.case !== field.localName) return field;
    holder = heldIn(holder, field) as Message | undefined;
    if (!holder || field.fieldKind !== "message") return undefined;
  }
  return undefined;
}
