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
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { type FieldPath, fieldPath, lastOf } from "./field-path.ts";
import { isTextual } from "./well-known.ts";

/** One part of a path between slashes: fixed text, as it is when decoded, one part of any text ("*"), or any number of parts ("**"). */
export type Segment = { readonly literal: string } | { readonly wildcard: "*" | "**" };

/** A field that some segments of a path fill. */
export interface Variable {
  readonly field: FieldPath;
  readonly from: number;
  /** Behind its last segment. */
  readonly to: number;
  /** Whether its template has several segments, or "**". Then slashes are part of its text, and "%2F" stays as it is. */
  readonly isMulti: boolean;
}

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

/** Undefined where a percent sign does not begin the encoding of a character. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** @throws Error, made by `wrong`, that names the variable */
function ensureVariables(variables: readonly Variable[], wrong: (what: string) => Error): void {
  const names = new Set<string>();
  /** What is set so far of each oneof, by its full name within the request. */
  const chosen = new Map<string, string>();
  for (const { field: path, isMulti } of variables) {
    const name = nameOf(path);
    const { fieldKind, scalar } = lastOf(path);
    if (names.has(name)) throw wrong(`has {${name}} twice`);
    names.add(name);
    if (fieldKind === "list" || fieldKind === "map") throw wrong(`has {${name}}, which must not be repeated`);
    if (!isTextual(lastOf(path)))
      throw wrong(`has {${name}}, which must be a scalar, an enum or another value that a text can tell`);
    if (isMulti && scalar !== ScalarType.STRING)
      throw wrong(`has {${name}} with several segments, which must be a string`);
    for (const [i, { oneof }] of path.entries()) {
      if (!oneof) continue;
      const [place, choice] = [nameOf([...path.slice(0, i), oneof]), nameOf(path.slice(0, i + 1))];
      const other = chosen.get(place) ?? choice;
      if (other !== choice) throw wrong(`fills both ${other} and ${choice} of the oneof ${place}`);
      chosen.set(place, choice);
    }
  }
}

/** As the contract writes it, such as "book.author.name". */
const nameOf = (path: readonly Pick<DescField, "name">[]): string => path.map(({ name }) => name).join(".");

/**
 * Compiles a link such as "/books?isbn={isbn}" to a function that fills it in from a message. Slashes of a value stay slashes
 * in a variable that has several segments, as in "/v1/{name=shelves/*}".
 */
export function linkTo(template: string, message: DescMessage): (from: object) => string {
  const parts = template.split(/\{([^{}]*)\}/).map((part, i) => {
    if (i % 2 === 0) return part;
    const [name = "", segments = ""] = part.split("=");
    return { field: fieldNamed(name, message), isMulti: /\/|\*\*/.test(segments) };
  });
  return (from) =>
    parts
      .map((part) => {
        if (typeof part === "string") return part;
        const text = addressText((from as Record<string, unknown>)[part.field.localName] ?? "");
        return part.isMulti ? text.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(text);
      })
      .join("");
}

/** A scalar as it stands in addresses: bytes in base64url (RFC 4648, 5), for a slash would end a part of a path. */
export const addressText = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64url") : String(value);

function fieldNamed(name: string, message: DescMessage): DescField {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`{${name}} is no field of ${message.typeName}`);
  if (field.fieldKind !== "scalar" || field.oneof) throw new Error(`{${name}} must be a scalar outside a oneof`);
  return field;
}
