/** Enum values by short names in lower case: PET_STATUS_AVAILABLE is "available". */
import type { DescEnum } from "@bufbuild/protobuf";

const isUnspecified = ({ number, name }: { number: number; name: string }) =>
  number === 0 && /(^|_)UNSPECIFIED$/.test(name);

/** Name and number of each value. The zero that means "unspecified" has none: in JSON the member is absent instead. */
export function enumNames(desc: DescEnum): [string, number][] {
  const prefix = desc.sharedPrefix?.length ?? 0;
  return desc.values
    .filter((value) => !isUnspecified(value))
    .map(({ name, number }) => [name.slice(prefix).toLowerCase(), number]);
}

/** What each number is answered with, as JSON text: of several names the first, as in proto3 JSON. */
export const enumTexts = (desc: DescEnum): ReadonlyMap<number, string> =>
  new Map(
    enumNames(desc)
      .toReversed()
      .map(([name, number]) => [number, JSON.stringify(name)]),
  );
