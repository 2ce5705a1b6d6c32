/** RFC 3339 with nanoseconds. */
import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";

const FORM = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

const FIRST = -62_135_596_800; // 0001-01-01T00:00:00Z
const LAST = 253_402_300_799; // 9999-12-31T23:59:59Z

/** Undefined when the text is no moment of the years 0001 to 9999 (UTC). Second 60 and a tenth digit are refused. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = FORM.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const [offsetHour, offsetMinute] = [Number(match[9] ?? 0), Number(match[10] ?? 0)];
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day); // Date.UTC reads the year 99 as 1999
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined; // February 30
  const offset = (offsetHour * 60 + offsetMinute) * (match[8] === "-" ? -60 : 60);
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offset;
  if (seconds < FIRST || seconds > LAST) return undefined;
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Number((match[7] ?? "").padEnd(9, "0")) });
}

/**
 * With "Z", and with 3, 6 or 9 digits of a second where there are any, as proto3 JSON does. Throws for what is no time
 * there: before the year 1 or after 9999.
 */
export function formatTimestamp({ seconds, nanos }: Timestamp): string {
  if (seconds < FIRST || seconds > LAST || nanos < 0 || nanos > 999_999_999)
    throw new RangeError(`a Timestamp of ${seconds} s and ${nanos} ns is no time in JSON`);
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}${decimals(nanos)}Z`;
}

/** Parts of a second with their point, by 3, 6 or 9 digits; empty for none. */
export const decimals = (nanos: number): string =>
  nanos === 0
    ? ""
    : `.${String(nanos)
        .padStart(9, "0")
        .replace(/(000){1,2}$/, "")}`;
