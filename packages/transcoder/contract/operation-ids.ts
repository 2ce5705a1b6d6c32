/** What operations are called: as their RPCs are, and where several share one, by what sets them apart. */
import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { Operation } from "./operation.ts";
import { ANY_VERB, verbOf } from "./verb.ts";

/** The id of one binding of an RPC, by itself: of several with one verb all have the same. */
export function idOf(method: DescMethod, verb: string, hasMask: boolean): string {
  const { localName } = method;
  const [, updated] = /^update([A-Z]\w*)$/.exec(localName) ?? [];
  if (hasMask && updated) return verb === "PUT" ? `replace${updated}` : localName;
  const isFirst = !hasOption(method, http) || verb === verbOf(getOption(method, http));
  return isFirst ? localName : localName + (verb === ANY_VERB ? "Any" : verb.split("-").map(capitalized).join(""));
}

const capitalized = (word: string): string => word.charAt(0) + word.slice(1).toLowerCase();

/** Of bindings with one verb the second has a 2 behind it, and so on. */
export function withOwnIds(operations: readonly Operation[]): Operation[] {
  const taken = new Set(operations.map(({ id }) => id));
  return operations.map((operation, i) => {
    if (operations.findIndex(({ id }) => id === operation.id) === i) return operation;
    let count = 2;
    while (taken.has(operation.id + count)) count++;
    taken.add(operation.id + count);
    return { ...operation, id: operation.id + count };
  });
}
