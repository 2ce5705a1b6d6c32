/** How operations stand in a document: its paths have variables of one segment each, and few verbs. */
import type { Operation } from "../contract/operation.ts";
import { shownPath, shownShape, wildcardNames } from "../contract/shown-path.ts";
import type { Variable } from "../contract/template.ts";
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

/** An `operationId` is unique in its document: where two services have an RPC of one name, theirs begin with the service. */
export function withUniqueIds(operations: readonly Operation[]): Operation[] {
  const choices = operations.map(({ service: { name, typeName }, id }) => [id, `${name}_${id}`, `${typeName}.${id}`]);
  const [first, again] = [new Set<string>(), new Set<string>()];
  for (const choice of choices.flat()) (first.has(choice) ? again : first).add(choice);
  return operations.map((operation, i) => {
    const id = choices[i]?.find((choice) => !again.has(choice)) ?? operation.id;
    return { ...operation, id };
  });
}

/**
 * The document's `paths`. What it has no place for stands beside the others of its path as `x-additional-operations`, by verb
 * and route: another verb, or an operation whose path differs from an earlier one's in a "**" alone.
 */
export function pathsOf(described: readonly { readonly operation: Operation; readonly text: JsonObject }[]) {
  const items: Record<string, Record<string, JsonObject>> = {};
  const left: (typeof described)[number][] = [];
  for (const one of described) {
    const { path, verb } = one.operation;
    const item = items[path] ?? {};
    items[path] = item;
    if (hasPlace(one.operation) && !(verb.toLowerCase() in item)) item[verb.toLowerCase()] = one.text;
    else left.push(one);
  }
  for (const { operation, text } of left) {
    const item = items[operation.path];
    const others = { ...item?.["x-additional-operations"], [`${operation.verb} ${operation.route}`]: text };
    items[operation.path] = { ...item, "x-additional-operations": others };
  }
  return items;
}
