/** Where a record is found after the sunset of the GET that read it. */
import type { Codec } from "../contract/codec.ts";
import type { Operation } from "../contract/operation.ts";
import { type DeprecationPolicy, endOf, successorReader } from "../policy/deprecation.ts";
import type { Router } from "./router.ts";

interface Options {
  readonly codec: Codec;
  readonly basePath: string;
  readonly deprecation: DeprecationPolicy;
  readonly clock: () => number;
}

/** Compiles the address of the record at a path: the path, or after the sunset of its GET what that names as its successor. */
export function recordAddress(
  operations: readonly Operation[],
  { find }: Router,
  { basePath, deprecation, clock, codec }: Options,
): (path: string) => string {
  const ending = new Map(
    operations.flatMap((operation) => {
      const end = endOf(operation, deprecation);
      return end ? [[operation, { end, successorOf: successorReader(operation, basePath, codec) }]] : [];
    }),
  );
  return (path) => {
    const operation = find("GET", path);
    const found = operation && ending.get(operation);
    return (found && clock() >= found.end.getTime() && found.successorOf(path)) || path;
  };
}
