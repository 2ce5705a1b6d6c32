/** Spans of work that no request waits for. */
import type { CallContext } from "@petstore/rpc/call";
import type { TraceContext } from "@petstore/trace/context";
import type { Deps } from "./deps.ts";

export interface LeftBy {
  /** The trace that goes on with the work. By default the work begins one. */
  readonly of?: TraceContext | undefined;
  /** Other traces that have left the work, or a part of it. */
  readonly by?: readonly (TraceContext | undefined)[];
}

/** Does a piece of work as a span of its own, which leads to whatever has left the work to be done. */
export async function tracedWork<R>(
  { tracing }: Pick<Deps, "tracing">,
  name: string,
  { of, by = [] }: LeftBy,
  callContext: CallContext,
  work: (callContext: CallContext) => Promise<R>,
): Promise<R> {
  if (!tracing) return work(callContext);
  const links = by.filter((trace) => trace !== undefined);
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
