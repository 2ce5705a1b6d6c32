/** Numbers that look random, and are the same for the same seed in every run and on every machine (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** An integer from 1 to `highest`. */
export const upTo = (highest: number, random: () => number): number => 1 + Math.floor(random() * highest);

/** Another order of the same elements (Fisher-Yates). */
export function shuffled<T>(elements: readonly T[], random: () => number): T[] {
  const result = [...elements];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
}
