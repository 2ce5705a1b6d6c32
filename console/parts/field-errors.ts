/** Which field of a form an error is about, and what is said there. */
import type { ErrorCode, PetstoreError } from "@petstore/client";

/** A field, and how people call it. */
export interface FieldTexts {
  readonly name: string;
  readonly label: string;
  /** What to say when the petstore objects to the field and nothing is in it. */
  readonly missing?: string;
}

/** Messages by the names of their fields. */
export type FieldErrors = Readonly<Record<string, string>>;

/** Input that the form itself can't put into a request. */
export class InvalidInput extends Error {
  readonly field: string;
  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** Reads typed text as an integer that a number holds exactly. @throws InvalidInput */
export function integer(field: string, text: string): number {
  const value = Number(text);
  if (!/^-?\d+$/.test(text.trim())) throw new InvalidInput(field, "must be a whole number");
  if (!Number.isSafeInteger(value)) throw new InvalidInput(field, `must be ${Number.MAX_SAFE_INTEGER} at most`);
  return value;
}

/** Reads typed text as an integer of 32 bits. `least` is the least that the petstore takes there. @throws InvalidInput */
export function integer32(field: string, text: string, least: number): number {
  const value = integer(field, text);
  if ((value | 0) !== value) throw new InvalidInput(field, `must be from ${least} to 2147483647`);
  return value;
}

/** Reads the value of a browser's date and time field, in the browser's time zone. @throws InvalidInput */
export function dateTime(field: string, text: string): Date {
  const date = new Date(text);
  // Other years are not allowed in a timestamp (google.protobuf.Timestamp), but browsers let people type them.
  const year = date.getUTCFullYear();
  if (!(year >= 1 && year <= 9999)) throw new InvalidInput(field, "must be a date in the years 1 to 9999");
  return date;
}

/** The value of such a field for a time. */
export function localTime(time: string): string {
  const local = new Date(Date.parse(time) - new Date(time).getTimezoneOffset() * 60_000);
  return local.toISOString().replace(/(:00)?\.000Z$|Z$/, "");
}

/** A time as it is shown. */
export const shownTime = (time: string): string =>
  new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/**
 * The messages of an error by field: its violations, or for other codes the field that `fieldOf` names. Empty if the error is about none of these fields.
 */
export function fieldErrors(
  error: PetstoreError | InvalidInput,
  fields: readonly FieldTexts[],
  values: Readonly<Record<string, string>>,
  fieldOf: Partial<Record<ErrorCode, string>> = {},
): FieldErrors {
  const found = messages(error, fieldOf).flatMap(([name, message]) => {
    const field = fields.find((each) => each.name === name);
    return field ? [[name, sentence(field, message, values[name])] as const] : [];
  });
  return Object.fromEntries(found);
}

function messages(
  error: PetstoreError | InvalidInput,
  fieldOf: Partial<Record<ErrorCode, string>>,
): (readonly [field: string, message: string])[] {
  if (error instanceof InvalidInput) return [[error.field, error.message]];
  if (error.violations) return error.violations.map(({ field, message }) => [field, message]);
  return [[fieldOf[error.code] ?? "", error.message]];
}

/** Rules are told as "must be ..."; the petstore's other messages are sentences already. */
export const sentence = ({ label, missing }: FieldTexts, message: string, value = ""): string => {
  if (missing !== undefined && value.trim() === "") return missing;
  return message.startsWith("must ") ? `${label} ${message}.` : message;
};

/** A count as it is typed: a number, or a change of the one that there is, such as "+10" or "-2". */
const COUNT = /^\s*([+-]?)\s*(\d*)\s*$/;

/** One more or less, not below 0. A change stays a change, and text that is no count as it is. */
export function stepped(text: string, by: 1 | -1): string {
  const [, sign = "", digits] = COUNT.exec(text) ?? [];
  if (digits === undefined) return text;
  const value = Number(sign + (digits || "0")) + by;
  if (sign === "") return `${Math.max(value, 0)}`;
  return value < 0 ? `${value}` : `+${value}`;
}

/** The count that is meant, where there are `base`; undefined for none. @throws InvalidInput */
export function countMeant(field: string, text: string, base: number): number | undefined {
  if (text.trim() === "") return undefined;
  const [, sign, digits] = COUNT.exec(text) ?? [];
  if (!sign || !digits) return integer32(field, text, 0);
  const change = integer32(field, digits, 0);
  return base + (sign === "+" ? change : -change);
}
