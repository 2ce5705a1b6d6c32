/** What a body is said to be: `Content-Type` and `Content-Encoding` (RFC 9110, 8.3 and 8.4). */
import { MIMEType } from "node:util";

/** Undefined for what is no media type. Parameters that are not well-formed are left out. */
export function parseType(text: string): MIMEType | undefined {
  try {
    return new MIMEType(text);
  } catch {
    return undefined;
  }
}

/** Whether text of this type is in UTF-8, as it is where no charset is named. */
export const isUtf8 = ({ params }: MIMEType): boolean => /^utf-?8$/i.test(params.get("charset") ?? "utf-8");

/** The content codings that a header lists, in lower case. */
export const codingsIn = (header = ""): readonly string[] =>
  header
    .split(",")
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== "");

/** Whether a text is the name of a charset, which some take for a coding. */
export function isCharset(text: string): boolean {
  try {
    return new TextDecoder(text) !== undefined;
  } catch {
    return false;
  }
}
