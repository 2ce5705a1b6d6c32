/** Random values. */

/** An integer from 1 to `highest`. */
export const upTo = (highest: number, random: () => number): number => 1 + Math.floor(random() * highest);

/** The same elements in random order (Fisher-Yates). */
export function shuffled<T>(elements: readonly T[], random: () => number): T[] {
  const result = [...elements];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
}
