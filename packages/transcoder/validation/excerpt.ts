/** What an error may repeat of a request: a little of it, so that no answer grows with what was sent. */

/** Most bytes of the message of an error, in UTF-8. */
export const MAX_ERROR_BYTES = 1000;
/** Most bytes of a name or value that such a message quotes. */
const MAX_QUOTE_BYTES = 64;
/** Most problems that one error names. */
const MAX_NAMED = 10;

const encoder = new TextEncoder();

/** The text, or its beginning and "..." when it has more bytes in UTF-8. */
export function excerpt(text: string, maxBytes = MAX_QUOTE_BYTES): string {
  const lengthWithin = (bytes: number) => encoder.encodeInto(text, new Uint8Array(bytes)).read;
  return lengthWithin(maxBytes) === text.length ? text : `${text.slice(0, lengthWithin(maxBytes - 3))}...`;
}

/** As many as one error names: at most ten. */
export const firstOf = <T>(all: readonly T[]): readonly T[] => all.slice(0, MAX_NAMED);

/** Sentences in one: the first of them, and how many more there are. */
export function joinFirst(sentences: readonly string[]): string {
  const first = firstOf(sentences).join("; ");
  const rest = sentences.length - MAX_NAMED;
  return rest > 0 ? `${first}; and ${rest} more` : first;
}
