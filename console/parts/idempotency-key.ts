/**
 * Idempotency keys of a form that creates. A key answers once: a refusal is the answer to it for a day, whatever happens in
 * the meantime. So a key lasts from the first attempt until the petstore has decided, and no longer.
 */
import { PetstoreError } from "@petstore/client";
import { useMemo } from "preact/hooks";

/**
 * Whether a key is bound to the refusal, as to those that depend on what is stored. After all others, such as RATE_LIMITED, an
 * earlier attempt under the same key may still have succeeded.
 */
const isDecided = ({ status, code }: PetstoreError): boolean =>
  status === 404 || (status === 409 && code !== "CONCURRENT_UPDATE");

/** Returns a function that creates under a key: the same as before if the same is sent and nothing was decided. */
export function createKeys(random: () => string) {
  let last: { readonly sent: string; readonly key: string } | undefined;
  return async <T>(sent: object, create: (requestId: string) => Promise<T>): Promise<T> => {
    const text = JSON.stringify(sent);
    if (last?.sent !== text) last = { sent: text, key: random() };
    try {
      const answer = await create(last.key);
      last = undefined;
      return answer;
    } catch (error) {
      if (error instanceof PetstoreError && isDecided(error)) last = undefined;
      throw error;
    }
  };
}

/** 128 random bits. Not `randomUUID`, which pages have over https only. */
const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Such a function, for as long as a form is open. */
export const useKeys = () => useMemo(() => createKeys(randomKey), []);
