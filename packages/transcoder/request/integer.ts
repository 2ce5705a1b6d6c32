/** The mathematical value of JSON's numbers, exact however they are written. */

const PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

// No integer that a field can hold has more digits (2^64-1 has 20); beyond, size is all that matters.
const MANY_DIGITS = 40;

/**
 * The integer that a JSON number stands for: 1 for `1.0` and `10e-1`, 0 for `-0`; undefined for `1.5`. Numbers of more
 * than 40 digits come back as 10^40 or -10^40: no field holds either.
 */
export function toInteger(text: string): bigint | undefined {
  if (/^-?\d{1,15}$/.test(text)) return BigInt(Number(text)); // the common case
  const [, sign, whole = "", fraction = "", exponent = "0"] = PARTS.exec(text) as RegExpExecArray;
  const significant = (whole + fraction).replace(/^0+/, "");
  const digits = significant.slice(0, lengthWithoutZeros(significant));
  if (digits === "") return 0n;
  const zeros = Number(exponent) - fraction.length + (significant.length - digits.length);
  if (zeros < 0) return undefined;
  const size = digits.length + zeros > MANY_DIGITS ? 10n ** BigInt(MANY_DIGITS) : BigInt(digits + "0".repeat(zeros));
  return sign ? -size : size;
}

/** A scan, for /0+$/ begins anew at every zero. */
function lengthWithoutZeros(digits: string): number {
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return end;
}
