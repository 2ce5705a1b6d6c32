/** Plants secrets and searches for them in the output of processes. */

export interface Planted {
  /** What kind of secret it is. */
  readonly kind: string;
  /** Distinctive, and long enough not to occur by accident. */
  readonly text: string;
}

/** The number of bytes before a secret in the same base64, modulo 3. */
const OFFSETS = [0, 1, 2];

/** The encoded forms in which a secret could be written, by the name of the encoding. */
export function formsOf(text: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(text);
  const base64 = OFFSETS.map((offset): [string, string] => {
    const whole = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // Without the characters at both ends, which depend on the bytes next to the secret.
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

/** The secrets that a text contains, in any form, each with its context. */
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
