/** A count as it is typed: a number, or a change of the one that there is, such as "+10" or "-2". */
import { integer32 } from "./field-errors.ts";

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
