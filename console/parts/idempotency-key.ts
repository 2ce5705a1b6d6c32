/**
 * Idempotency keys of a form that creates. A key answers once: a refusal is the answer to it for a day, whatever happens in
 * the meantime. So a key lasts from the first attempt until the petstore has decided, and no longer.
 */
import { Code } from "@connectrpc/connect";
import { isPetstoreError } from "@petstore/client";

/**
 * The codes of refusals that a key is bound to: those that depend on what is stored. After all others, such as
 * RESOURCE_EXHAUSTED, an earlier attempt under the same key may still have succeeded.
 */
const DECIDED: readonly Code[] = [Code.NotFound, Code.FailedPrecondition];

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
      if (isPetstoreError(error) && DECIDED.includes(error.cause.code)) last = undefined;
      throw error;
    }
  };
}

/** 128 random bits. Not `randomUUID`, which pages have over https only. */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
