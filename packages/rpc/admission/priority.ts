/** The priority of calls when there is not room for all. It follows from the contract: nobody sets it by hand. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { field as fieldOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";

/**
 * From the highest to the lowest, which is refused first: `finish` changes or ends an existing record, such as completing or
 * cancelling an order, which frees resources; `create` begins a new one; `read` gets a named one; `list` searches.
 */
export const priorities = ["finish", "create", "read", "list"] as const;
export type Priority = (typeof priorities)[number];

const known = new WeakMap<DescMethod, Priority>();

/** A paginated read (AIP-158) or a stream is a `list`, a write that takes an idempotency key is a `create`. */
export function priorityOf(method: DescMethod): Priority {
  let priority = known.get(method);
  if (priority === undefined) {
    priority = read(method);
    known.set(method, priority);
  }
  return priority;
}

function read({ idempotency, methodKind, input }: DescMethod): Priority {
  if (idempotency !== Level.NO_SIDE_EFFECTS)
    return input.fields.some((field) => getOption(field, fieldOption).header === "Idempotency-Key")
      ? "create"
      : "finish";
  return methodKind !== "unary" || input.fields.some(({ name }) => name === "page_token") ? "list" : "read";
}
