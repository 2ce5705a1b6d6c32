/** How operations stand in a document: its paths have variables of one segment each, and few verbs. */
import type { Operation } from "../contract/operation.ts";
import { shownPath, shownShape, wildcardNames } from "../contract/shown-path.ts";
import type { Variable } from "../contract/template.ts";
import { groupBy } from "./group-by.ts";
import type { JsonObject } from "./json.ts";

/** A variable of a path as the document has it: one wildcard of the template. */
export interface PathVariable {
  readonly name: string;
  /** What the wildcard is part of; undefined for one that fills no field. */
  readonly variable: Variable | undefined;
  /** Whether it is all of that. */
  readonly isWhole: boolean;
}

/** What the document calls the variables of the operation's path, in its order. */
export function pathVariables({ path, template: { segments, variables } }: Operation): PathVariable[] {
  const names = path.match(/(?<=\{)[^}]+/g) ?? [];
  return segments
    .flatMap((segment, i) => ("literal" in segment ? [] : [i]))
    .map((at, i) => {
      const variable = variables.find(({ from, to }) => from <= at && at < to);
      const isWhole = variable?.from === at && variable.to === at + 1;
      return { name: names[i] as string, variable, isWhole };
    });
}

/** Paths that differ in the names of their variables alone are one (OpenAPI 3.1.1, 4.8.8): all get those of the first. */
export function withOnePathEach(operations: readonly Operation[]): Operation[] {
  const names = new Map(
    operations.map(({ template }) => [shownShape(template), wildcardNames(template)] as const).toReversed(),
  );
  return operations.map((operation) => {
    const { template } = operation;
    return { ...operation, path: shownPath(template, names.get(shownShape(template)) as string[]) };
  });
}

/** The verbs that OpenAPI 3.1 has a place for (4.8.9.1). */
const VERBS: readonly string[] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"];

/** Whether the document has a place for the operation's verb. */
export const hasPlace = ({ verb }: Operation): boolean => VERBS.includes(verb);

/**
 * The document's `paths`. What it has no place for stands beside the others of its path as `x-additional-operations`, by verb
 * and route: another verb, or an operation whose path differs from an earlier one's in a "**" alone.
 */
export function pathsOf(
  described: readonly { readonly operation: Operation; readonly text: JsonObject }[],
): JsonObject {
  const paths = groupBy(described, ({ operation }) => operation.path);
  return Object.fromEntries([...paths].map(([path, ofPath]) => [path, pathItem(ofPath)]));
}

function pathItem(ofPath: readonly { readonly operation: Operation; readonly text: JsonObject }[]): JsonObject {
  const item: Record<string, JsonObject> = {};
  const others: Record<string, JsonObject> = {};
  for (const { operation, text } of ofPath) {
    const { verb, route } = operation;
    if (hasPlace(operation) && !(verb.toLowerCase() in item)) item[verb.toLowerCase()] = text;
    else others[`${verb} ${route}`] = text;
  }
  return Object.keys(others).length === 0 ? item : { ...item, "x-additional-operations": others };
}
