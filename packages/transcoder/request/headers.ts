/** Request headers that every operation understands. Each function takes the value as node gives it. */
import { HttpError } from "../errors/http-error.ts";

type Value = string | string[] | undefined;

/**
 * Milliseconds that the caller gives the request (X-Server-Timeout, decimal seconds), the maximum if it gives more or
 * does not say.
 *
 * @throws HttpError INVALID_HEADER
 */
export function timeoutMs(value: Value, maxMs: number): number {
  if (value === undefined) return maxMs;
  const seconds = typeof value === "string" && /^\d+(\.\d+)?$/.test(value) ? Number(value) : 0;
  if (seconds === 0)
    throw new HttpError("INVALID_HEADER", "X-Server-Timeout: must be a decimal number of seconds above 0, such as 2.5");
  return Math.min(seconds * 1000, maxMs);
}

/** The key: the text of a string of RFC 8941 (3.3.3), as the draft of the header has it, or else the value as it was sent. */
export const idempotencyKey = (value: string): string =>
  /^"(?:[^"\\]|\\["\\])*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;

const QUOTED = /"(?:[^"\\]|\\.)*"?/g;

/** Whether the caller prefers `handling=strict` (RFC 7240). Of a preference given twice the first counts. */
export function prefersStrict(value: Value): boolean {
  if (value === undefined) return false;
  const handling = String(value)
    .replaceAll(QUOTED, (quoted) => quoted.replaceAll(",", "_"))
    .split(",")
    .map((preference) => /^\s*handling\s*=\s*"?(\w+)"?\s*(;|$)/i.exec(preference)?.[1]?.toLowerCase())
    .find((found) => found !== undefined);
  return handling === "strict";
}
