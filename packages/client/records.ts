/** Records as callers have them, made of messages of the contract, and requests the other way round. */
import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type * as category from "./gen/petstore/category/v1/category_pb.ts";
import type { PetStatus as StatusNumber } from "./gen/petstore/common/v1/pet_status_pb.ts";
import type * as inventory from "./gen/petstore/inventory/v1/inventory_pb.ts";
import type * as order from "./gen/petstore/order/v1/order_pb.ts";
import type * as pet from "./gen/petstore/pet/v1/pet_pb.ts";

/** One that only a later version of the petstore knows is the text of its number, so a `switch` needs a `default`. */
export type PetStatus = "available" | "pending" | "sold";

/** As JSON has it, with enum values as words. */
type Plain<T> = T extends bigint ? number : T extends Timestamp ? string : T extends StatusNumber ? PetStatus : T;

type Member<K> = Exclude<K, "$typeName" | "$unknown">;
type AsRecord<M extends Message> = { readonly [K in keyof M as Member<K>]: Plain<M[K]> };

/** An animal offered for sale. */
export interface Pet extends AsRecord<pet.Pet> {
  readonly status: PetStatus;
}
/** A group of pets. */
export interface Category extends AsRecord<category.Category> {}
/** An order for a pet, or one that names none. */
export interface Order extends AsRecord<order.Order> {
  readonly id: number;
  readonly complete: boolean;
}
/** The stock of one pet. */
export interface InventoryItem extends AsRecord<inventory.InventoryItem> {}

type Givable<T> = T extends Timestamp
  ? string | Date
  : T extends readonly (infer E)[]
    ? Plain<E> | readonly Plain<E>[]
    : Plain<T>;

/** Members that a caller may leave out. One that is `undefined` is left out. */
export type Given<M extends Message, Without extends keyof M = never> = {
  readonly [K in keyof M as Exclude<Member<K>, Without>]?: Givable<M[K]> | undefined;
};

export interface NewPet extends Given<pet.NewPet> {
  readonly name: string;
  readonly categoryId: number;
}
export interface NewCategory extends Given<category.NewCategory> {
  readonly name: string;
}
export interface NewOrder extends Given<order.Order, "id" | "etag"> {}
export interface NewStock extends Given<inventory.InventoryUpdate> {
  readonly quantity: number;
}

/** What an update changes: the members that are there. `null` removes one, where `Removable` names it. */
export type Changes<New, Removable extends keyof New = never> = {
  readonly [K in keyof New]?: New[K] | (K extends Removable ? null : never) | undefined;
};

/** Enum values are words, 64-bit integers numbers, timestamps text in the form of RFC 3339. */
export const recordOf = (desc: DescMessage, message: Message): object =>
  Object.fromEntries(
    desc.fields.flatMap((field) => {
      const value = (message as unknown as Record<string, unknown>)[field.localName];
      return value === undefined ? [] : [[field.localName, plainValue(field, value)]];
    }),
  );

export function plainValue(field: DescField, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => plainValue(field, each));
  if (typeof value === "bigint") return Number(value);
  if (field.enum) return field.enum.value[value as number]?.localName.toLowerCase() ?? `${value}`;
  if (field.message?.typeName === TimestampSchema.typeName) return timeText(value as Timestamp);
  return field.message ? recordOf(field.message, value as Message) : value;
}

/**
 * The message that was given. A member that is `null` or `undefined` is not set.
 * @throws Error for what no message of this type can hold.
 */
export function messageOf(desc: DescMessage, given: object): Message {
  const message = create(desc) as unknown as Record<string, unknown>;
  for (const [name, value] of Object.entries(given)) {
    const field = desc.field[name];
    if (!field) throw new Error(`${name} is not known: ${desc.name} has ${namesOf(desc.fields)}.`);
    if (value === undefined || value === null) continue;
    const single = (each: unknown) => messageValue(field, each);
    message[name] = field.fieldKind === "list" ? [value].flat().map(single) : single(value);
  }
  return message as unknown as Message;
}

/** What is no number. Without a check "false" would be sent as true. */
const TYPES: { readonly [T in ScalarType]?: string } = {
  [ScalarType.BOOL]: "boolean",
  [ScalarType.STRING]: "string",
};

function messageValue(field: DescField, value: unknown): unknown {
  if (field.message?.typeName === TimestampSchema.typeName) return timestamp(field.localName, value as string | Date);
  if (field.message) return messageOf(field.message, value as object);
  if (field.enum) return enumNumber(field, `${value}`);
  const isWide = field.scalar === ScalarType.INT64;
  const type = (field.scalar && TYPES[field.scalar]) ?? "number";
  if (isWide ? Number.isSafeInteger(value) : typeof value === type) return isWide ? BigInt(value as number) : value;
  const wanted = isWide ? "an integer below 2^53" : `a ${type}`;
  throw new Error(`${field.localName} must be ${wanted}, not ${value} (${typeof value}).`);
}

function enumNumber({ localName, enum: desc }: DescField, word: string): number {
  const known = desc?.values.filter(({ number }) => number !== 0) ?? [];
  const found = known.find((value) => value.localName.toLowerCase() === word);
  if (found || /^\d+$/.test(word)) return found?.number ?? Number(word);
  throw new Error(`${localName} must be one of ${namesOf(known).toLowerCase()}, not ${word}.`);
}

const namesOf = (descs: readonly { readonly localName: string }[]) =>
  descs.map(({ localName }) => localName).join(", ");

/** With as many digits for the fraction of a second as the petstore's own JSON: 0, 3, 6 or 9. */
function timeText({ seconds, nanos }: Timestamp): string {
  const fraction = `${nanos}`.padStart(9, "0").replace(/(000){1,3}$/, "");
  return `${new Date(Number(seconds) * 1_000).toISOString().slice(0, 19)}${fraction && `.${fraction}`}Z`;
}

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

function timestamp(name: string, given: string | Date): object {
  const text = given instanceof Date && !Number.isNaN(given.getTime()) ? given.toISOString() : `${given}`;
  const [, local = "", fraction = "", zone = ""] = TIME.exec(text) ?? [];
  const ms = Date.parse(local + zone);
  const isInRange = ms >= Date.parse("0001-01-01") && ms < Date.parse("+010000-01-01");
  // Date.parse makes March 2 of February 30.
  if (!isInRange || !new Date(`${local}Z`).toISOString().startsWith(local))
    throw new Error(`${name} must be a time such as 2026-12-24T18:00:00Z in the years 1 to 9999, not ${text}.`);
  return create(TimestampSchema, { seconds: BigInt(ms / 1_000), nanos: Number(fraction.padEnd(9, "0")) });
}
