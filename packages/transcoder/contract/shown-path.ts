/** Paths as documents write them, where a variable is one segment: a variable of several has a name for each wildcard. */
import { jsonPath } from "./field-path.ts";
import { isRest, type Template } from "./template.ts";

/**
 * The names of a template's wildcards, in its order. A variable that is one wildcard goes by the JSON name of its field. Those
 * of `shelves/*` and `books/*` are "shelf" and "book", and "**" goes by its field as well.
 */
export function wildcardNames({ segments, variables }: Template): string[] {
  const names = new Set<string>();
  /** How often a name was taken. */
  const counts = new Map<string, number>();
  for (const [i, segment] of segments.entries()) {
    if ("literal" in segment) continue;
    const variable = variables.find(({ from, to }) => from <= i && i < to);
    const before = variable && i === variable.from ? undefined : segments[i - 1];
    const isOfLiteral = before && "literal" in before && !(variable && isRest(segment));
    const name = isOfLiteral ? singular(before.literal) : variable ? jsonPath(variable.field) : "segment";
    let count = (counts.get(name) ?? 0) + 1;
    while (names.has(count === 1 ? name : name + count)) count++;
    counts.set(name, count);
    names.add(count === 1 ? name : name + count);
  }
  return [...names];
}

/** The template with these names, such as "/shelves/{shelf}/books/{book}:lend". */
export function shownPath(template: Template, names: readonly string[]): string {
  let at = 0;
  return written(template, () => `{${names[at++]}}`);
}

/** What two templates have in common that are one path to a document: it takes no notice of names. */
export const shownShape = (template: Template): string => written(template, () => "{}");

/** A template whatever its variables are called: two of one shape and verb take the same requests. */
export const shapeOf = (template: Pick<Template, "segments" | "customVerb">): string =>
  written(template, (wildcard) => wildcard);

function written(
  { segments, customVerb }: Pick<Template, "segments" | "customVerb">,
  shown: (wildcard: string) => string,
) {
  const parts = segments.map((segment) => ("literal" in segment ? encoded(segment.literal) : shown(segment.wildcard)));
  return `/${parts.join("/")}${customVerb === "" ? "" : `:${encoded(customVerb)}`}`;
}

const encoded = (literal: string): string =>
  encodeURIComponent(literal)
    .replaceAll("*", "%2A")
    .replaceAll(/%(?:24|26|2B|2C|3B|3D|40)/g, decodeURIComponent);

/** Of words as they are in paths: "shelves" is "shelf", "properties" is "property", "addresses" is "address". */
function singular(plural: string): string {
  const [, stem, end] = /^(.+?)(ves|ies|sses|xes|ches|shes|(?<!s)s)$/.exec(plural) ?? [];
  const ends: Readonly<Record<string, string>> = { ves: "f", ies: "y", s: "" };
  const word = stem === undefined || end === undefined ? plural : stem + (ends[end] ?? end.slice(0, -2));
  return word.replaceAll(/[^\w.-]/g, "_");
}
