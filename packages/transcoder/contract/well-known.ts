/** Well-known types: all their files; which are a string in JSON, and so can be in a path or a query too; which are any JSON. */
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { protoCamelCase, protoSnakeCase } from "@bufbuild/protobuf/reflect";
import {
  AnySchema,
  BoolValueSchema,
  type Duration,
  DurationSchema,
  EmptySchema,
  type FieldMask,
  FieldMaskSchema,
  isWrapperDesc,
  ListValueSchema,
  StructSchema,
  type Timestamp,
  TimestampSchema,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { SchemaError } from "../errors/violations.ts";

/** One type of each file. */
const OF_EACH_FILE: readonly DescMessage[] = [
  AnySchema,
  DurationSchema,
  EmptySchema,
  FieldMaskSchema,
  StructSchema,
  TimestampSchema,
  BoolValueSchema,
];

/** The files of the types that have a form of their own in proto3 JSON. */
export const WELL_KNOWN_FILES = OF_EACH_FILE.map(({ file }) => file);

/** How the messages of one type are told by a text. */
interface TextForm {
  /** `isJson` tells a string of a body from a parameter. */
  readonly parse: (text: string, isJson: boolean) => Message | undefined;
  /** What is said of anything else. */
  readonly problem: string;
  readonly format: (message: never) => string;
}

const FORMS: ReadonlyMap<string, TextForm> = new Map<string, TextForm>([
  [
    TimestampSchema.typeName,
    {
      parse: parseTimestamp,
      problem: "must be a date and time such as 2027-12-31T23:59:59Z (RFC 3339), in years 0001 to 9999",
      format: formatTimestamp,
    },
  ],
  [
    DurationSchema.typeName,
    {
      parse: parseDuration,
      problem: 'must be seconds with an "s" behind them, such as 1.5s, from -315576000000s to 315576000000s',
      format: formatDuration,
    },
  ],
  [
    FieldMaskSchema.typeName,
    {
      parse: (text, isJson) => parseFieldMask(text, !isJson),
      problem: "must be names of fields separated by commas, such as title,author.givenName",
      format: formatFieldMask,
    },
  ],
]);

/** Whether all of a message is a string in JSON. */
export const hasTextForm = ({ typeName }: DescMessage): boolean => FORMS.has(typeName);

/**
 * Whether a value of the field, or an item of a list or a map, can be told by a text: scalars, enums, Timestamp, Duration,
 * FieldMask and the wrappers of scalars.
 */
export const isTextual = ({ message }: DescField): boolean =>
  !message || hasTextForm(message) || isWrapperDesc(message);

const DYNAMIC: readonly string[] = [StructSchema, ValueSchema, ListValueSchema].map(({ typeName }) => typeName);

/** Whether a message stands for any JSON, any object or any array. */
export const isDynamic = ({ typeName }: DescMessage): boolean => DYNAMIC.includes(typeName);

/** Whether protobuf-es holds a field of a wrapper's type as the scalar within. */
export const isUnwrapped = ({ fieldKind, oneof }: DescField): boolean => fieldKind === "message" && !oneof;

/** Compiles the reader of a message that has a text form. @throws SchemaError */
export function messageFromText({ typeName }: DescMessage, isJson: boolean): (value: unknown) => Message {
  const { parse, problem } = FORMS.get(typeName) as TextForm;
  return (value) => {
    const message = typeof value === "string" ? parse(value, isJson) : undefined;
    if (!message) throw new SchemaError(problem);
    return message;
  };
}

/** The writer of the text, without quotes; undefined of other types. It throws for what JSON can't tell. */
export const textOf = ({ typeName }: DescMessage): ((message: never) => string) | undefined =>
  FORMS.get(typeName)?.format;

/** RFC 3339 with nanoseconds. */
const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

const FIRST = -62_135_596_800; // 0001-01-01T00:00:00Z
const LAST = 253_402_300_799; // 9999-12-31T23:59:59Z

/** Undefined when the text is no moment of the years 0001 to 9999 (UTC). Second 60 and a tenth digit are refused. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = TIMESTAMP.exec(text);
  if (!match) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
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
const decimals = (nanos: number): string =>
  nanos === 0
    ? ""
    : `.${String(nanos)
        .padStart(9, "0")
        .replace(/(000){1,2}$/, "")}`;

/** Seconds with up to nine decimals, such as "1.5s". */
const DURATION = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;

/** Some 10,000 years. */
const LONGEST = 315_576_000_000n;

/** Undefined when the text is no duration, or one beyond 315,576,000,000 s. */
function parseDuration(text: string): Duration | undefined {
  const match = DURATION.exec(text);
  if (!match) return undefined;
  const seconds = BigInt(match[2] as string);
  const nanos = Number((match[3] ?? "").padEnd(9, "0"));
  if (seconds > LONGEST || (seconds === LONGEST && nanos > 0)) return undefined;
  return create(DurationSchema, match[1] === "-" ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos });
}

/** With 3, 6 or 9 decimals where there are any, as proto3 JSON has it. @throws RangeError for what is no duration there */
function formatDuration({ seconds, nanos }: Duration): string {
  const isNegative = seconds < 0n || nanos < 0;
  const [size, fraction] = [seconds < 0n ? -seconds : seconds, Math.abs(nanos)];
  if (size > LONGEST || fraction > 999_999_999 || (isNegative && (seconds > 0n || nanos > 0)))
    throw new RangeError(`a Duration of ${seconds} s and ${nanos} ns is none in JSON`);
  return `${isNegative ? "-" : ""}${size}${decimals(fraction)}s`;
}

/**
 * Paths by JSON names, separated by commas; undefined when the text is no mask. Outside of JSON, as in
 * `?updateMask=display_name`, many callers write the names of the contract: with `takesOriginal` a path may be either.
 */
function parseFieldMask(text: string, takesOriginal: boolean): FieldMask | undefined {
  if (text === "") return create(FieldMaskSchema);
  const paths = text.split(",");
  if (paths.includes("") || (!takesOriginal && text.includes("_"))) return undefined;
  return create(FieldMaskSchema, { paths: paths.map(protoSnakeCase) });
}

/** @throws RangeError for a path that would be another one when it is read again */
function formatFieldMask({ paths }: FieldMask): string {
  const named = paths.map(protoCamelCase);
  const wrong = paths.find((path, i) => protoSnakeCase(named[i] as string) !== path);
  if (wrong !== undefined)
    throw new RangeError(`the path ${JSON.stringify(wrong)} of a FieldMask can't be written as JSON`);
  return named.join(",");
}
