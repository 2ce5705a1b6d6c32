/** Spans of work that no request waits for. */
import type { CallContext } from "@petstore/rpc/call";
import type { TraceContext } from "@petstore/trace/context";
import type { Deps } from "./deps.ts";

export interface LeftBy {
  /** The trace that goes on with the work. Else it begins one. */
  readonly of?: TraceContext | undefined;
  /** Other traces that have left the work, or a part of it. */
  readonly by?: readonly (TraceContext | undefined)[] | undefined;
}

/** Does work as a span that leads to whatever has left it to be done; without a span if nothing of that is recorded. */
export async function tracedWork<R>(
  { tracing }: Pick<Deps, "tracing">,
  name: string,
  { of, by = [] }: LeftBy,
  callContext: CallContext,
  work: (callContext: CallContext) => Promise<R>,
): Promise<R> {
  if (!tracing) return work(callContext);
  const links = by.filter((trace) => trace !== undefined);
  if (!of && links.length === 0) return work(callContext);
  const span = tracing.start(name, "internal", of, undefined, links);
  try {
    return await work({ ...callContext, trace: span.context });
  } catch (error) {
    span.fail(error instanceof Error ? error.name : "unknown");
    throw error;
  } finally {
    span.end();
  }
}
