/** Names of enum values: short and in lower case (PET_STATUS_AVAILABLE is "available"), or as in the contract. */
import type { DescEnum, DescField } from "@bufbuild/protobuf";

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

/** Name and number of each value as in proto3 JSON: the name in the contract, and the one for JSON where it has another. */
export const fullEnumNames = ({ values }: DescEnum): [string, number][] => [
  ...values.map(({ jsonName, number }): [string, number] => [jsonName, number]),
  ...values.map(({ name, number }): [string, number] => [name, number]),
];

/** The same as `enumTexts`, by the names of proto3 JSON. */
export const fullEnumTexts = ({ values }: DescEnum): ReadonlyMap<number, string> =>
  new Map(values.toReversed().map(({ number, jsonName }) => [number, JSON.stringify(jsonName)]));

/** The enum whose one value is null in JSON. */
export const NULL_VALUE = "google.protobuf.NullValue";

/** Whether zero is a value like any other. */
export const hasZeroName = (desc: DescEnum): boolean => enumNames(desc).some(([, number]) => number === 0);

/** What each number is answered with, as JSON text: of several names the first, as in proto3 JSON. */
export const enumTexts = (desc: DescEnum, isItem = false): ReadonlyMap<number, string> =>
  new Map(
    enumNames(desc, isItem)
      .toReversed()
      .map(([name, number]) => [number, JSON.stringify(name)]),
  );

/** Whether values of the field are items of a list or values of a map. */
export const isOfItems = ({ fieldKind }: DescField): boolean => fieldKind === "list" || fieldKind === "map";
