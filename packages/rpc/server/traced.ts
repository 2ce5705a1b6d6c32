/** A span for each call that a dispatcher runs, from its admission to its answer. */
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  ATTR_RPC_METHOD,
  ATTR_RPC_STATUS_CODE,
  ATTR_RPC_SYSTEM_NAME,
  RPC_SYSTEM_NAME_VALUE_CONNECTRPC,
} from "@petstore/trace/names";
import type { Span, Tracing } from "@petstore/trace/tracing";
import type { Dispatcher } from "./dispatcher.ts";
import { type Incoming, type IncomingStream, methodName } from "./run.ts";

type Calls = Pick<Dispatcher, "invoke" | "stream">;

export interface TracedOptions {
  /** Calls that only tell how the process is would bury the others. */
  readonly isTraced: (method: DescMethod) => boolean;
  /** Whether one of the system's own processes calls. */
  readonly isOwn: (incoming: Incoming) => boolean;
}

/** Errors of the server, whatever the caller sent ("Semantic conventions for gRPC", status of server spans). */
const FAULTS: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

export const spanAttributes = (method: string) => ({
  [ATTR_RPC_SYSTEM_NAME]: RPC_SYSTEM_NAME_VALUE_CONNECTRPC,
  [ATTR_RPC_METHOD]: method,
});

export function noteFailure(span: Span, thrown: unknown, isFault: (code: Code) => boolean): void {
  const { code } = ConnectError.from(thrown);
  const name = codeToString(code);
  span.set({ [ATTR_RPC_STATUS_CODE]: name });
  if (isFault(code)) span.fail(name);
}

export function traced(
  { invoke, stream }: Calls,
  tracing: Tracing | undefined,
  { isTraced, isOwn }: TracedOptions,
): Calls {
  if (!tracing) return { invoke, stream };

  /** Undefined for a call without a span. */
  function begin(method: DescMethod, incoming: Incoming): Span | undefined {
    if (!isTraced(method)) return undefined;
    const sender = isOwn(incoming) ? "own process" : incoming.isProxy ? "trusted proxy" : "stranger";
    const origin = tracing?.accept((header) => incoming.headers.get(header), sender);
    const name = methodName(method);
    return origin && tracing?.start(name, "server", origin, spanAttributes(name));
  }
  const fail = (span: Span, thrown: unknown) => noteFailure(span, thrown, (code) => FAULTS.has(code));

  async function recorded(method: DescMethodUnary, request: Message, incoming: Incoming, span: Span) {
    try {
      return await invoke(method, request, { ...incoming, trace: span.context });
    } catch (thrown) {
      fail(span, thrown);
      throw thrown;
    } finally {
      span.end();
    }
  }

  async function* recordedStream(
    method: DescMethodServerStreaming,
    request: Message,
    incoming: IncomingStream,
    span: Span,
  ) {
    try {
      yield* stream(method, request, { ...incoming, trace: span.context });
    } catch (thrown) {
      fail(span, thrown);
      throw thrown;
    } finally {
      span.end();
    }
  }

  return {
    invoke(method, request, incoming) {
      const span = begin(method, incoming);
      return span ? recorded(method, request, incoming, span) : invoke(method, request, incoming);
    },
    stream(method, request, incoming) {
      const span = begin(method, incoming);
      return span ? recordedStream(method, request, incoming, span) : stream(method, request, incoming);
    },
  };
}
