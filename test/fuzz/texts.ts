/** Texts of a case: short in its file, whatever their length on the wire; and bytes that are not text. */
import fc from "fast-check";

export type Text =
  | string
  | { readonly repeat: string; readonly times: number }
  | { readonly hex: string }
  | readonly Text[];

/** `encoding` applies to the strings in the text. */
export function bytesOf(text: Text, encoding: "utf8" | "latin1" = "utf8"): Buffer {
  if (typeof text === "string") return Buffer.from(text, encoding);
  if ("repeat" in text) return Buffer.from(text.repeat.repeat(text.times), encoding);
  if ("hex" in text) return Buffer.from(text.hex, "hex");
  return Buffer.concat(text.map((part) => bytesOf(part, encoding)));
}

const byte = fc.constantFrom(...Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0")));
export const bytes = (maxLength: number): fc.Arbitrary<Text> =>
  fc.record({ hex: fc.string({ unit: byte, maxLength }) });

export const repeated = (most: number, parts: readonly string[]): fc.Arbitrary<Text> =>
  fc.record({ repeat: fc.constantFrom(...parts), times: fc.integer({ min: 0, max: most }) });

/** Values that have broken some reader. */
const NASTY = [
  ...["", " ", "\t", "0", "-1", "1.0", "1e3", "01", "+1", "0x10", "9223372036854775807", "9223372036854775808", "-0"],
  ...["a", "*", ",", ";", "=", '"', '""', "'", "\\", "/", "//", "..", "%", "%00", "%2f", "%zz", "%C3%28", "\u00e9"],
  ...["null", "true", "NaN", "__proto__", "constructor", "toString", "hasOwnProperty", "$gt", "\u0000", "\u007f"],
];
const latin1 = fc.constantFrom(
  ..."abc01,;=\"'/\\%*:-_. ",
  ...Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)),
);
/** For places where one character is one byte. It has no line breaks; targets add those where they want them. */
export const oddField: fc.Arbitrary<Text> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...NASTY) },
  { weight: 3, arbitrary: fc.string({ unit: latin1, maxLength: 12 }) },
  {
    weight: 2,
    arbitrary: repeated(9000, ["a", "0", " ", "\t ", ",", ", ", ";a=b", '"1", ', "%41", "\\", '"', "/", "a=b&"]),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...NASTY), fc.constantFrom(...NASTY)) },
);

export const oddString: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...NASTY, "\ud83d", "\u{1f415}", "\u202e", "\ufeff", "\u2028", "\u3000"),
  fc.string({ unit: "binary", maxLength: 12 }),
);
