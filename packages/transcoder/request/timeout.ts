/** How long a caller gives a request. */
import type { IncomingHttpHeaders } from "node:http";
import { fieldError } from "../errors/http-error.ts";

/**
 * `X-Server-Timeout` has decimal seconds, such as 2.5; `Grpc-Timeout` has, as in gRPC, up to eight digits and a unit: H, M or S
 * for hours, minutes and seconds, m, u or n for thousandths, millionths and billionths of a second.
 */
export type TimeoutHeader = "X-Server-Timeout" | "Grpc-Timeout";

export const TIMEOUT_HEADERS: readonly TimeoutHeader[] = ["X-Server-Timeout", "Grpc-Timeout"];

/**
 * Compiles the reader of the time that the caller gives: the least of what the headers say and the greatest that there is, in
 * milliseconds.
 */
export function timeoutReader(names: readonly TimeoutHeader[], maxMs: number) {
  const readers = names.map((name) => ({ key: name.toLowerCase(), read: READERS[name] }));
  /** @throws HttpError INVALID_HEADER */
  return (headers: IncomingHttpHeaders): number => {
    let ms = maxMs;
    for (const { key, read } of readers) {
      const value = headers[key];
      if (value !== undefined) ms = Math.min(ms, read(String(value)));
    }
    return ms;
  };
}

const READERS: Readonly<Record<TimeoutHeader, (value: string) => number>> = {
  "X-Server-Timeout": (value) => {
    const seconds = /^\d+(\.\d+)?$/.test(value) ? Number(value) : 0;
    if (seconds > 0) return seconds * 1000;
    throw fieldError("INVALID_HEADER", "X-Server-Timeout", "must be a decimal number of seconds above 0, such as 2.5");
  },
  "Grpc-Timeout": (value) => {
    const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? [];
    const ms = Number(digits) * (UNIT_MS[unit ?? ""] ?? 0);
    if (ms > 0) return ms;
    throw fieldError(
      "INVALID_HEADER",
      "Grpc-Timeout",
      "must be up to eight digits above 0 and a unit of H, M, S, m, u, n, such as 500m",
    );
  },
};

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
