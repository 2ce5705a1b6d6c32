/** A span for each call that a dispatcher runs, from its admission to its answer. */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  ATTR_RPC_METHOD,
  ATTR_RPC_STATUS_CODE,
  ATTR_RPC_SYSTEM_NAME,
  RPC_SYSTEM_NAME_VALUE_CONNECTRPC,
} from "@petstore/trace/names";
import type { Span, Tracing } from "@petstore/trace/tracing";
import { type Calls, type Incoming, methodName } from "./run.ts";

/** Errors of the server, whatever the caller sent ("Semantic conventions for gRPC", status of server spans). */
const FAULTS: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

type IsFault = (code: Code) => boolean;

export const spanAttributes = (method: string) => ({
  [ATTR_RPC_SYSTEM_NAME]: RPC_SYSTEM_NAME_VALUE_CONNECTRPC,
  [ATTR_RPC_METHOD]: method,
});

export function noteFailure(span: Span, thrown: unknown, isFault: IsFault): void {
  const { code } = ConnectError.from(thrown);
  const name = codeToString(code);
  span.set({ [ATTR_RPC_STATUS_CODE]: name });
  if (isFault(code)) span.fail(name);
}

/** The answer of a call; the span ends with it. */
export const answered = <A>(span: Span, answer: Promise<A>, isFault: IsFault): Promise<A> =>
  answer
    .catch((thrown) => {
      noteFailure(span, thrown, isFault);
      throw thrown;
    })
    .finally(() => span.end());

/** The messages of a stream; the span ends with them. It may last for days, so nothing else of its call is kept here. */
export async function* streamed<T>(span: Span, messages: AsyncIterable<T>, isFault: IsFault): AsyncGenerator<T, void> {
  try {
    yield* messages;
  } catch (thrown) {
    noteFailure(span, thrown, isFault);
    throw thrown;
  } finally {
    span.end();
  }
}

/** `isOwn`: whether one of the system's own processes calls. */
export function traced(
  { invoke, stream }: Calls,
  tracing: Tracing | undefined,
  isTraced: (method: DescMethod) => boolean,
  isOwn: (incoming: Incoming) => boolean,
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
  const isFault: IsFault = (code) => FAULTS.has(code);
  const below = <I extends Incoming>(incoming: I, { context }: Span) => ({ ...incoming, trace: context });

  return {
    invoke(method, request, incoming) {
      const span = begin(method, incoming);
      if (!span) return invoke(method, request, incoming);
      return answered(span, invoke(method, request, below(incoming, span)), isFault);
    },
    stream(method, request, incoming) {
      const span = begin(method, incoming);
      if (!span) return stream(method, request, incoming);
      return streamed(span, stream(method, request, below(incoming, span)), isFault);
    },
  };
}
