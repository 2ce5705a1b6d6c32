/** Messages as the HTTP API shows them: exact integers of 64 bits, enums in lower case, no entity tags. */
import { type DescEnum, type DescField, type DescMessage, type Message, ScalarType, toJson } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";

/** A JSON value with exact integers. */
export type Exact = null | boolean | number | bigint | string | readonly Exact[] | { readonly [member: string]: Exact };

/** The members of a message that are set, without those that `leftOut` names. */
export function httpJson(desc: DescMessage, message: Message, leftOut: readonly string[] = ["etag"]): Exact {
  if (desc.typeName.startsWith("google.protobuf.")) return toJson(desc, message) as Exact;
  const it = reflect(desc, message);
  const shown = desc.fields.filter((field) => it.isSet(field) && !leftOut.includes(field.localName));
  return Object.fromEntries(
    shown.map((field) => [field.jsonName, shownValue(field, (message as never)[field.localName])]),
  );
}

/** The value of a field of a message. */
export function shownValue(field: DescField, value: unknown): Exact {
  if (field.fieldKind === "list") return (value as unknown[]).map((each) => single(field, each));
  return single(field, value);
}

function single(field: DescField, value: unknown): Exact {
  if (field.message) return httpJson(field.message, value as Message);
  if (field.enum) return enumWord(field.enum, value as number);
  return field.scalar === ScalarType.BYTES ? "" : (value as Exact);
}

/** PET_STATUS_AVAILABLE is "available". A value that only a newer service knows is its number. */
const enumWord = (desc: DescEnum, number: number): Exact =>
  desc.value[number]?.name.slice(desc.sharedPrefix?.length ?? 0).toLowerCase() ?? number;

/** As JSON text, on one line or on several. Integers that a record has are below 2^53. */
export const textOf = (value: Exact, indent?: number): string =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? Number(each) : each), indent);
