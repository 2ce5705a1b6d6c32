/** Keys for creates whose outcome is unknown: the same form sent again is the same create, with other values it is another. */

/** Gives the key for what is sent: the same as before while that stays the same. */
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

/** 128 random bits. Not `randomUUID`, which a page has over https alone. */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
