/** How long calls took, as a metric. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { CALL_LABELS } from "@petstore/metrics/declaration";
import type { Histogram, Trace } from "@petstore/metrics/registry";
import type { CallEnded } from "./call-ended.ts";

export function recordCalls(durations: Histogram<typeof CALL_LABELS>): CallEnded {
  const names = new WeakMap<DescMethod, string>(); // contracts come and go
  const nameOf = (method: DescMethod): string => {
    const known = names.get(method) ?? `${method.parent.typeName}/${method.name}`;
    names.set(method, known);
    return known;
  };
  const statusOf = (failure: ConnectError | undefined) => (failure ? codeToString(failure.code) : "");
  return (method, ms, failure, context) =>
    durations.of("connectrpc", nameOf(method), statusOf(failure)).record(ms / 1000, traceOf(context));
}

/** The trace that work belongs to, where there are traces. */
export const traceOf = (context: object | undefined): Trace | undefined =>
  (context as { readonly trace?: Trace | undefined } | undefined)?.trace;
