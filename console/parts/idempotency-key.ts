/**
 * Idempotency keys for creates whose outcome is unknown. Sending the same form again is the same create; other values are a
 * new one.
 */

/** `keyFor` returns the same key for as long as the same is sent. */
export function createKeys(random: () => string): { keyFor(sent: object): string } {
  let last: { readonly sent: string; readonly key: string } | undefined;
  return {
    keyFor(sent) {
      const text = JSON.stringify(sent);
      if (last?.sent !== text) last = { sent: text, key: random() };
      return last.key;
    },
  };
}

/** 128 random bits. Not `randomUUID`, which pages have over https only. */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
