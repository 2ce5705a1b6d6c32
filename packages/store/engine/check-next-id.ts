import { checkId } from "../document/codec.ts";
import type { NextIdOptions } from "../port.ts";

/** Throws a TypeError for what names no sequence, and for a number that none can go on above. */
export function checkNextId(sequence: string, { above = 0 }: NextIdOptions = {}): void {
  checkId(sequence);
  if (Number.isSafeInteger(above) && Number.isSafeInteger(above + 1)) return;
  throw new TypeError(`${sequence} can't go on above ${above}: use a safe integer that another one follows.`);
}
