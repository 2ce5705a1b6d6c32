/**
 * Path templates by the grammar of google/api/http.proto:
 *
 *     Template  = "/" [ Segments ] [ Verb ] ;
 *     Segments  = Segment { "/" Segment } ;
 *     Segment   = "*" | "**" | LITERAL | Variable ;
 *     Variable  = "{" FieldPath [ "=" Segments ] "}" ;
 *     Verb      = ":" LITERAL ;
 *
 * "**" need not be the last segment, as http.proto has it: contracts of Google's own have fixed ones behind it.
 */
import type { DescMessage } from "@bufbuild/protobuf";
import { type FieldPath, fieldPath } from "./field-path.ts";
import { ensureVariables } from "./variables.ts";

/** One part of a path between slashes: fixed text, as it is when decoded, one part of any text ("*"), or any number of parts ("**"). */
export type Segment = { readonly literal: string } | { readonly wildcard: "*" | "**" };

/** A field that some segments of a path fill. */
export interface Variable {
  readonly field: FieldPath;
  /** The position of its first segment. */
  readonly from: number;
  /** The position behind its last segment. */
  readonly to: number;
  /** Whether its template has several segments, or "**". Then slashes are part of its text, and "%2F" stays as it is. */
  readonly isMulti: boolean;
}

/** A path template, read. */
export interface Template {
  readonly segments: readonly Segment[];
  /** In the order of the template. */
  readonly variables: readonly Variable[];
  /** What stands behind a colon at the end, such as "cancel" (AIP-136); empty for none. */
  readonly customVerb: string;
}

/** Reads a path template. @throws Error that quotes it when it breaks the grammar, or binds what a path can't fill */
export function parseTemplate(template: string, message: DescMessage): Template {
  const wrong = (what: string) => new Error(`the path "${template}" ${what}`);
  if (!template.startsWith("/")) throw wrong("must start with a slash");
  if (template === "/") return { segments: [{ literal: "" }], variables: [], customVerb: "" };
  const segments: Segment[] = [];
  const variables: Variable[] = [];
  let at = 1;
  /** Takes what the pattern matches here, be it nothing. */
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(template)?.[0] ?? "";
    at += found.length;
    return found;
  };

  function readSegments(read: () => void): void {
    do read();
    while (take(SLASH) !== "");
  }
  function readSegment(): void {
    const text = take(TEXT);
    if (text === "*" || text === "**") segments.push({ wildcard: text });
    else segments.push({ literal: literalOf(text) });
  }
  function literalOf(text: string): string {
    if (text === "" && template[at] === "{") throw wrong("has a variable that is not a whole segment");
    if (text === "") throw wrong("has an empty segment");
    const literal = IS_LITERAL.test(text) ? decoded(text) : undefined;
    if (literal === undefined)
      throw wrong(
        `has a segment "${text}" that is neither plain text nor *, ** or {field}; encode other characters (%20)`,
      );
    // Clients take dots for the way up.
    if (literal === "." || literal === "..") throw wrong(`has a segment "${text}", which clients take for a way up`);
    return literal;
  }
  function readVariable(): void {
    const name = take(NAME).slice(1);
    if (name === "") throw wrong("has a variable without a name");
    const from = segments.length;
    if (take(EQUALS) === "") segments.push({ wildcard: "*" });
    else
      readSegments(() => {
        if (template[at] === "{") throw wrong(`has a variable within {${name}}`);
        readSegment();
      });
    if (take(CLOSE) === "") throw wrong(`has a variable {${name} that does not end with "}" where it should`);
    const to = segments.length;
    const isMulti = to - from > 1 || isRest(segments[from] as Segment);
    try {
      variables.push({ field: fieldPath(name, message), from, to, isMulti });
    } catch (error) {
      throw wrong(`has a variable that is no field: ${(error as Error).message}`);
    }
  }

  readSegments(() => (template[at] === "{" ? readVariable() : readSegment()));
  const customVerb = take(COLON) === "" ? "" : literalOf(take(TEXT));
  if (at < template.length) throw wrong(`has a "${template[at]}" where none can be, behind "${template.slice(0, at)}"`);
  if (segments.filter(isRest).length > 1) throw wrong('has "**" twice, so that nobody knows what belongs to which');
  ensureVariables(variables, wrong);
  return { segments, variables, customVerb };
}

/** Whether a segment of a template takes any number of a path's. */
export const isRest = (segment: Segment): boolean => "wildcard" in segment && segment.wildcard === "**";

const SLASH = /\//y;
const COLON = /:/y;
const EQUALS = /=/y;
const CLOSE = /\}/y;
const NAME = /\{[\w.]*/y;
const TEXT = /[^/{}:]*/y;

/** What a path can have in it as it is (RFC 3986, 3.3), and percent-encoded characters. */
const IS_LITERAL = /^(?:[\w.~!$&'()+,;=@-]|%[\da-f]{2})+$/i;

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
