/** What an error may repeat of a request: a little of it, so that no answer grows with what was sent. */

/** Most bytes of a message in UTF-8. */
export const MAX_MESSAGE = 1000;
/** Most bytes of a name or value that a message quotes. */
const MAX_QUOTE = 64;
const MAX_TOLD = 10;

const encoder = new TextEncoder();

/** The text, or its beginning and "..." when it has more bytes in UTF-8. */
export function excerpt(text: string, maxBytes = MAX_QUOTE): string {
  const lengthWithin = (bytes: number) => encoder.encodeInto(text, new Uint8Array(bytes)).read;
  return lengthWithin(maxBytes) === text.length ? text : `${text.slice(0, lengthWithin(maxBytes - 3))}...`;
}

/** The first of many, and the number of the rest. */
export const firstOf = <T>(all: readonly T[]): readonly T[] => all.slice(0, MAX_TOLD);

/** Sentences in one: the first of them, and how many more there are. */
export function tellFirst(sentences: readonly string[]): string {
  const told = firstOf(sentences).join("; ");
  const rest = sentences.length - MAX_TOLD;
  return rest > 0 ? `${told}; and ${rest} more` : told;
}
