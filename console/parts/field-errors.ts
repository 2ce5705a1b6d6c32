/** Which field of a form an error is about. */
import type { PetstoreError, Reason } from "@petstore/client";

/** By the name of the field. */
export type FieldErrors = Readonly<Record<string, string>>;

/** What the form itself can't make a request of. */
export class InvalidInput extends Error {
  readonly field: string;
  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** What people typed as an integer of 64 bits. @throws InvalidInput */
export function integer(field: string, text: string): bigint {
  if (!/^-?\d{1,19}$/.test(text.trim())) throw new InvalidInput(field, "must be an integer");
  return BigInt(text.trim());
}

/** The same, of 32 bits. @throws InvalidInput */
export function integer32(field: string, text: string): number {
  const value = integer(field, text);
  if (BigInt.asIntN(32, value) !== value) throw new InvalidInput(field, "must be from -2147483648 to 2147483647");
  return Number(value);
}

/** A date and time as a browser's field gives it, in the time zone of the browser. @throws InvalidInput */
export function dateTime(field: string, text: string): Date {
  const date = new Date(text);
  // Others are no timestamps (google.protobuf.Timestamp), and a browser lets people type them.
  const year = date.getUTCFullYear();
  if (!(year >= 1 && year <= 9999)) throw new InvalidInput(field, "must be a date in the years 1 to 9999");
  return date;
}

/**
 * The violations by field, such as "pet.category_id" for the field `categoryId`; and other reasons, where `fieldOf` says which
 * field they are about. Empty when it is about none of these fields.
 */
export function fieldErrors(
  error: PetstoreError | InvalidInput,
  fields: readonly string[],
  fieldOf: Partial<Record<Reason, string>> = {},
): FieldErrors {
  if (error instanceof InvalidInput) return { [error.field]: error.message };
  if (error.reason === "VALIDATION_FAILED") {
    const found = error.violations.map(({ field, message }) => [camelCase(field.split(".").at(-1) ?? ""), message]);
    return Object.fromEntries(found.filter(([field]) => fields.includes(field ?? "")));
  }
  const field = fieldOf[error.reason];
  return field ? { [field]: error.message } : {};
}

const camelCase = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
