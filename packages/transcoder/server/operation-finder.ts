/** Which operation a request asks for, where it says so in the plainest way, and where a record is found whose GET has gone. */
import type { Operation } from "../contract/operation.ts";
import type { Segment } from "../contract/template.ts";
import { type DeprecationPolicy, endOf, successorReader } from "../policy/deprecation.ts";

export type FindOperation = (verb?: string, target?: string) => Operation | undefined;

/**
 * Compiles the search. It finds less than the router does: no target with a scheme and a host, no fixed part of a path in
 * percent signs, no HEAD.
 */
export function operationFinder(operations: readonly Operation[], basePath: string): FindOperation {
  const base = basePath.split("/");
  const inOrder = operations.toSorted((a, b) => (freedom(a) < freedom(b) ? -1 : 1));
  const byShape = new Map<string, Operation[]>();
  for (const operation of inOrder) {
    const key = shape(operation.verb, base.length + operation.segments.length);
    byShape.set(key, [...(byShape.get(key) ?? []), operation]);
  }
  const fits = ({ segments }: Operation, parts: readonly string[]) =>
    base.every((part, i) => part === parts[i]) &&
    segments.every((segment, i) => isIn(segment, parts[base.length + i] as string));
  return (verb = "", target = "") => {
    const end = target.indexOf("?");
    const parts = (end < 0 ? target : target.slice(0, end)).split("/");
    return byShape.get(shape(verb, parts.length))?.find((operation) => fits(operation, parts));
  };
}

const shape = (verb: string, parts: number) => `${verb} ${parts}`;
/** Sorts fixed text before what a request fills in, segment by segment from the left, as the router does. */
const freedom = ({ segments }: Operation) => segments.map((segment) => ("literal" in segment ? 0 : 1)).join("");
const isIn = (segment: Segment, part: string) => ("literal" in segment ? part === segment.literal : part !== "");

interface Options {
  readonly basePath: string;
  readonly deprecation: DeprecationPolicy;
  readonly clock: () => number;
}

/** Compiles the address of the record at a path: the path, or after the sunset of its GET what that names as its successor. */
export function recordAddress(
  operations: readonly Operation[],
  { basePath, deprecation, clock }: Options,
): (path: string) => string {
  const find = operationFinder(operations, basePath);
  const ending = new Map(
    operations.flatMap((operation) => {
      const end = endOf(operation, deprecation);
      return end ? [[operation, { end, successorOf: successorReader(operation, basePath) }]] : [];
    }),
  );
  return (path) => {
    const operation = find("GET", path);
    const found = operation && ending.get(operation);
    return (found && clock() >= found.end.getTime() && found.successorOf(path)) || path;
  };
}
