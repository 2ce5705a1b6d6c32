/** What a request is called, in its answer, in logs and in the calls that are made for it. */
export const REQUEST_ID_HEADER = "x-request-id";

/** What a caller's own identifier for a request looks like, so that it can stand in any log. */
export const REQUEST_ID_PATTERN = "^[A-Za-z0-9._:/+=-]{1,128}$";
const requestIds = new RegExp(REQUEST_ID_PATTERN);
export const isRequestId = (text: string): boolean => requestIds.test(text);

/** The identifier that a request came with, if it is one, or a new one. */
export function requestIdOf(given: string | string[] | undefined, random: () => number): string {
  const text = String(given ?? "");
  return isRequestId(text) ? text : newRequestId(random);
}

/** An identifier for a request that came without one, or for work that no request asked for. `random` is in [0, 1). */
export const newRequestId = (random: () => number, kind = "r"): string => `${kind}-${base36(random() * 2 ** 52)}`;

const DIGITS = [..."0123456789abcdefghijklmnopqrstuvwxyz"];
const PAIRS = DIGITS.flatMap((first) => DIGITS.map((second) => first + second));

/** The last eleven digits of a number's whole part. By tables, for to write a number in base 36 takes V8 ten times as long. */
function base36(value: number): string {
  let [text, rest] = ["", Math.floor(value)];
  for (let i = 0; i < 5; i++) {
    const quotient = Math.floor(rest / PAIRS.length);
    text = PAIRS[rest - quotient * PAIRS.length] + text;
    rest = quotient;
  }
  return DIGITS[rest % DIGITS.length] + text;
}
