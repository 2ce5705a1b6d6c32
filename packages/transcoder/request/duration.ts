/** google.protobuf.Duration as text: seconds with up to nine decimals, such as "1.5s". */
import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { decimals } from "./timestamp.ts";

const FORM = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;

/** Some 10,000 years. */
const LONGEST = 315_576_000_000n;

/** Undefined when the text is no duration, or one beyond 315,576,000,000 s. */
export function parseDuration(text: string): Duration | undefined {
  const match = FORM.exec(text);
  if (!match) return undefined;
  const seconds = BigInt(match[2] as string);
  const nanos = Number((match[3] ?? "").padEnd(9, "0"));
  if (seconds > LONGEST || (seconds === LONGEST && nanos > 0)) return undefined;
  return create(DurationSchema, match[1] === "-" ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos });
}

/** With 3, 6 or 9 decimals where there are any, as proto3 JSON has it. @throws RangeError for what is no duration there */
export function formatDuration({ seconds, nanos }: Duration): string {
  const isNegative = seconds < 0n || nanos < 0;
  const [size, fraction] = [seconds < 0n ? -seconds : seconds, Math.abs(nanos)];
  if (size > LONGEST || fraction > 999_999_999 || (isNegative && (seconds > 0n || nanos > 0)))
    throw new RangeError(`a Duration of ${seconds} s and ${nanos} ns is none in JSON`);
  return `${isNegative ? "-" : ""}${size}${decimals(fraction)}s`;
}
