/** Weak entity tags (RFC 9110, 8.8.3): If-Match matches none, however often the record is read again (13.1.1). */

export const isWeak = (tag: string): boolean => tag.startsWith("W/");

/** What to do when If-Match names these tags and does not hold; undefined if none is weak. */
export const weakTagAdvice = (tags: Iterable<string>): string | undefined =>
  [...tags].some(isWeak)
    ? "A weak tag (W/) never matches here. A proxy that compresses answers makes tags weak: send it without the W/."
    : undefined;
