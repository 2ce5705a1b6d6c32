/** What a request is called, in its answer, in logs and in the calls that are made for it. */
export const REQUEST_ID_HEADER = "x-request-id";

/** What a caller's own identifier for a request looks like, so that it can stand in any log. */
export const REQUEST_ID_PATTERN = "^[A-Za-z0-9._:/+=-]{1,128}$";
const requestIds = new RegExp(REQUEST_ID_PATTERN);
export const isRequestId = (text: string): boolean => requestIds.test(text);

/** An identifier for a request that came without one, or for work that no request asked for. `random` is in [0, 1). */
export const newRequestId = (random: () => number, kind = "r"): string =>
  `${kind}-${Math.floor(random() * 2 ** 52)
    .toString(36)
    .padStart(11, "0")}`;
