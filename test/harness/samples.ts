/** Adds up the samples of a metric in texts for Prometheus, all that have these labels. */
export function sumOf(
  texts: readonly string[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const found = texts
    .flatMap((text) => text.split("\n"))
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => Object.entries(labels).every(([label, value]) => line.includes(`${label}="${value}"`)));
  return found.length === 0 ? undefined : found.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
