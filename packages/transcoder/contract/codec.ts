/**
 * The two ways in which values are written as JSON, and all that differs between them, such as names of enum values: short and in
 * lower case (PET_STATUS_AVAILABLE is "available"), or as in the contract. And what readers and writers of both have in common:
 * how deep messages may nest.
 */
import { createRegistry, type DescEnum, type DescField, type Registry } from "@bufbuild/protobuf";

/**
 * - `proto3` is proto3 JSON: integers of 64 bits are strings in answers, enums go by their full names, null means unset.
 * - `exact` has no value twice: every integer is a number, enums go by short names in lower case, null is an error.
 *
 * In both an integer of a request may be a JSON number of any size and loses no digit, and a member twice is an error.
 */
export type CodecName = "proto3" | "exact";

export interface Codec {
  /** Enums go by their names in the contract, or by their numbers; otherwise by short names, and "unspecified" is absent. */
  readonly hasFullEnumNames: boolean;
  readonly writesLongsAsText: boolean;
  /** Requests may have numbers in strings, bytes in any form of base64, U+0000, and no body where it is the whole message. */
  readonly isLenient: boolean;
  /** Null in a request leaves a field unset; an answer writes it for a message that is unset. */
  readonly nullIsUnset: boolean;
  /** Answers leave out zeros of fields without presence, empty lists and maps, and null. */
  readonly omitUnpopulated: boolean;
  /** Answers name fields as the contract does: `page_size`. */
  readonly originalNames: boolean;
  readonly enumNumbers: boolean;
  /** The types that a google.protobuf.Any may hold, and the extensions of proto2. */
  readonly registry: () => Registry;
}

export interface CodecOptions {
  readonly codec?: CodecName | undefined;
  readonly omitUnpopulated?: boolean | undefined;
  readonly originalNames?: boolean | undefined;
  readonly enumNumbers?: boolean | undefined;
  readonly registry?: (() => Registry) | undefined;
}

/** A codec; `proto3` where nothing else is said. */
export function createCodec(given: CodecOptions): Codec {
  const isProto3 = given.codec !== "exact";
  return {
    hasFullEnumNames: isProto3,
    writesLongsAsText: isProto3,
    isLenient: isProto3,
    nullIsUnset: isProto3,
    omitUnpopulated: given.omitUnpopulated ?? false,
    originalNames: given.originalNames ?? false,
    enumNumbers: given.enumNumbers ?? false,
    registry: given.registry ?? createRegistry,
  };
}

export const EXACT: Codec = createCodec({ codec: "exact" });

/**
 * Most messages within one another, a request or an answer itself counted as the first: as many as readers of protobuf take.
 * Timestamps, wrappers and each google.protobuf.Any are messages too, and an array or an object of a google.protobuf.Value is
 * two.
 */
export const MOST_NESTED = 100;

const isUnspecified = ({ number, name }: { number: number; name: string }) =>
  number === 0 && /(^|_)UNSPECIFIED$/.test(name);

/**
 * Name and number of each value. The zero that means "unspecified" has none: in JSON the member is absent instead. As an item
 * of a list or a value of a map (`isItem`), which can't be absent, it goes by this name if there is no other for zero.
 */
export function enumNames(desc: DescEnum, isItem = false): [string, number][] {
  const prefix = desc.sharedPrefix?.length ?? 0;
  const isNamed = !isItem || desc.values.some((value) => value.number === 0 && !isUnspecified(value));
  return desc.values
    .filter((value) => !isNamed || !isUnspecified(value))
    .map(({ name, number }) => [name.slice(prefix).toLowerCase(), number]);
}

/** Name and number of each value that is taken: in proto3 JSON its name in the contract, and one for JSON where it has another. */
export const takenNames = (desc: DescEnum, isItem: boolean, { hasFullEnumNames }: Codec): [string, number][] =>
  hasFullEnumNames
    ? [
        ...desc.values.map(({ jsonName, number }): [string, number] => [jsonName, number]),
        ...desc.values.map(({ name, number }): [string, number] => [name, number]),
      ]
    : enumNames(desc, isItem);

/** The enum whose one value is null in JSON. */
export const NULL_VALUE = "google.protobuf.NullValue";

/** Whether zero is a value like any other. */
export const hasZeroName = (desc: DescEnum): boolean => enumNames(desc).some(([, number]) => number === 0);

/** What each number is answered with, as JSON text: of several names the first, as in proto3 JSON. */
export const enumTexts = (desc: DescEnum, isItem: boolean, codec: Codec): ReadonlyMap<number, string> =>
  new Map(
    takenNames(desc, isItem, codec)
      .toReversed()
      .map(([name, number]) => [number, JSON.stringify(name)]),
  );

/** Whether values of the field are items of a list or values of a map. */
export const isOfItems = ({ fieldKind }: DescField): boolean => fieldKind === "list" || fieldKind === "map";
