/** Which field of a form an error is about. */
import type { ErrorCode, PetstoreError } from "@petstore/client";

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
  if (!/^-?\d+$/.test(text.trim())) throw new InvalidInput(field, "must be an integer");
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

/**
 * The messages of an error by field: its violations, or for other codes the field that `fieldOf` names. Empty if the error is about none of these fields.
 */
export function fieldErrors(
  error: PetstoreError | InvalidInput,
  fields: readonly string[],
  fieldOf: Partial<Record<ErrorCode, string>> = {},
): FieldErrors {
  if (error instanceof InvalidInput) return { [error.field]: error.message };
  if (error.violations) {
    const found = error.violations.filter(({ field }) => fields.includes(field));
    return Object.fromEntries(found.map(({ field, message }) => [field, message]));
  }
  const field = fieldOf[error.code];
  return field ? { [field]: error.message } : {};
}
