/** Secrets that a test plants, and the search for them in what processes wrote. */

export interface Planted {
  /** What kind of secret it is. */
  readonly kind: string;
  /** Distinctive, and long enough to be found by no accident. */
  readonly text: string;
}

/** How many bytes may stand before a secret in the same base64, modulo 3. */
const OFFSETS = [0, 1, 2];

/** What a secret looks like that was written down in another way, by the name of the way. */
export function formsOf(text: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(text);
  const base64 = OFFSETS.map((offset): [string, string] => {
    const whole = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // Without the characters at both ends, which depend on what stands beside the secret.
    const inner = whole
      .replace(/=+$/, "")
      .slice(offset === 0 ? 0 : offset + 1, bytes.length % 3 || offset ? -1 : undefined);
    return [`base64, ${offset} bytes after its beginning`, inner];
  });
  return new Map([
    ["as it is", text],
    ...base64,
    ...base64.map(([name, form]): [string, string] => [
      `${name}, for URLs`,
      form.replaceAll("+", "-").replaceAll("/", "_"),
    ]),
    ["percent-encoded", encodeURIComponent(text)],
    ["in JSON", JSON.stringify(text).slice(1, -1)],
    ["in hexadecimal", bytes.toString("hex")],
    ["as the numbers of its bytes", bytes.join(",")],
    ["as the numbers of its bytes, in lines", bytes.join(", ")],
    ["with a space after each byte", bytes.toString("hex").replaceAll(/..(?=.)/g, "$& ")],
    ["backwards", [...text].reverse().join("")],
  ]);
}

/** The secrets that stand in a text, in whatever form, each with the place. */
export function leaksIn(written: string, planted: readonly Planted[]): readonly string[] {
  const lower = written.toLowerCase();
  return planted.flatMap(({ kind, text }) =>
    [...formsOf(text)]
      .filter(([name, form]) =>
        /hexadecimal|percent|byte$/.test(name) ? lower.includes(form.toLowerCase()) : written.includes(form),
      )
      .map(([name, form]) => {
        const at = Math.max(lower.indexOf(form.toLowerCase()), 0);
        return `${kind}, ${name}: ...${written.slice(Math.max(0, at - 80), at + form.length + 20)}...`;
      }),
  );
}
