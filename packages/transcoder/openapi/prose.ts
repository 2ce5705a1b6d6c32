/**
 * Texts of a contract, which generators of clients put into comments, whatever the language: nothing in them ends a comment
 * or, unseen, its line, and nothing is there that a compiler refuses.
 */

const LINE_BREAKS = /\r\n|[\r\v\f\x85\u2028\u2029]/g;
const SPACES = /\p{Zs}/gu;
/** Controls, what turns the direction of text, and what is no character. */
const REFUSED = /(?![\n\t])[\p{Cc}\p{Cs}\p{Bidi_Control}\p{Noncharacter_Code_Point}\uFEFF]/gu;
const COMMENT_SIGNS = /(?<=\*)(?=\/)|(?<=\/)(?=\*)/g;

export const prose = (text: string): string =>
  text.replaceAll(LINE_BREAKS, "\n").replaceAll(SPACES, " ").replaceAll(REFUSED, "").replaceAll(COMMENT_SIGNS, " ");

/** What stands on one line: titles, summaries, names. */
export const line = (text: string): string => prose(text).replaceAll(/\s+/g, " ").trim();
