/** Floating-point numbers as JSON. */

/** JSON has no NaN and no infinities: as in proto3 JSON they are the strings "NaN", "Infinity" and "-Infinity". */
export function doubleText(value: number): string {
  if (!Number.isFinite(value)) return JSON.stringify(String(value));
  return Object.is(value, -0) ? "-0" : String(value);
}

/** The shortest number that is read as the same value of 32 bits: 0.1 and not 0.10000000149011612, which it is in 64 bits. */
export function floatText(value: number): string {
  if (!Number.isFinite(value) || Number.isSafeInteger(value)) return doubleText(value);
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  // Nine digits tell all values of 32 bits apart.
  return String(Number(value.toPrecision(9)));
}
