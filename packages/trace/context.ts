/** W3C Trace Context, level 1: which trace work belongs to, as it is told from process to process. Pure. */

/** The place of work in a trace that is recorded. */
export interface TraceContext {
  /** 32 hex digits, not all 0. */
  readonly traceId: string;
  /** The span that the work is a part of: 16 hex digits, not all 0. */
  readonly spanId: string;
  /** What other systems note of the trace, in the form of `tracestate`. It is passed on as it came. */
  readonly state?: string | undefined;
}

export const TRACEPARENT = "traceparent";
export const TRACESTATE = "tracestate";

// What follows the flags belongs to a later version; version 00 ends with them. No version is called ff.
const form =
  /^(?!ff)(?:00(?=.{53}$)|(?!00)[\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;

/** A trace as a caller tells of it, and whether that records it. */
export type CallersTrace = TraceContext & { readonly sampled: boolean };

/** Undefined for what is no traceparent, among it two of them: then a new trace begins. */
export function readTraceparent(text: string | null | undefined): CallersTrace | undefined {
  const [, traceId, spanId, flags] = form.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, sampled: Number.parseInt(flags, 16) % 2 === 1 };
}

/** Always in version 00. */
export const toTraceparent = ({ traceId, spanId }: TraceContext): string => `00-${traceId}-${spanId}-01`;

const MAX_MEMBERS = 32;
/** Characters that are passed on; beyond them members are left out, those longer than `LONG` first, then the last. */
const MAX_STATE = 512;
const LONG = 128;
const member =
  /^((?:[a-z][a-z\d_*/-]{0,255})|(?:[a-z\d][a-z\d_*/-]{0,240}@[a-z][a-z\d_*/-]{0,13}))=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;

/** A tracestate to pass on; undefined for one that is empty or none. */
export function readTracestate(text: string | null | undefined): string | undefined {
  const members = (text ?? "")
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  const keys = new Set(members.map((one) => member.exec(one)?.[1]));
  // A key has one member.
  if (members.length === 0 || members.length > MAX_MEMBERS || keys.size < members.length || keys.has(undefined))
    return undefined;
  const all = members.join(",");
  if (all.length <= MAX_STATE) return all;
  const kept = members.filter(({ length }) => length <= LONG);
  while (kept.join(",").length > MAX_STATE) kept.pop();
  return kept.join(",") || undefined;
}

/** The headers of a call that is part of a trace. */
export const traceHeaders = (trace: TraceContext): Record<string, string> =>
  trace.state === undefined
    ? { [TRACEPARENT]: toTraceparent(trace) }
    : { [TRACEPARENT]: toTraceparent(trace), [TRACESTATE]: trace.state };

/** The trace in a line of the log, under the names that OpenTelemetry gives them in logs that it does not write itself. */
export const traceIds = (trace: TraceContext | undefined) =>
  trace && { trace_id: trace.traceId, span_id: trace.spanId };
