/** A span for each call: one where it is made, for each of its attempts, and one where it is served. */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { readTraceparent, TRACEPARENT, TRACESTATE, traceHeaders } from "@petstore/trace/context";
import {
  ATTR_RPC_METHOD,
  ATTR_RPC_STATUS_CODE,
  ATTR_RPC_SYSTEM_NAME,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  RPC_SYSTEM_NAME_VALUE_CONNECTRPC,
} from "@petstore/trace/names";
import type { Span, Tracing } from "@petstore/trace/tracing";
import { plainHeaders, rpcName } from "./call.ts";
import { hostOfUrl } from "./http/address.ts";
import type { Calls, Incoming } from "./server/run.ts";

type IsFault = (code: Code) => boolean;

const spanAttributes = (method: string) => ({
  [ATTR_RPC_SYSTEM_NAME]: RPC_SYSTEM_NAME_VALUE_CONNECTRPC,
  [ATTR_RPC_METHOD]: method,
});

function noteFailure(span: Span, thrown: unknown, isFault: IsFault): void {
  const { code } = ConnectError.from(thrown);
  const name = codeToString(code);
  span.set({ [ATTR_RPC_STATUS_CODE]: name });
  if (isFault(code)) span.fail(name);
}

/** The answer of a call; the span ends with it. */
const answered = <A>(span: Span, answer: Promise<A>, isFault: IsFault): Promise<A> =>
  answer
    .catch((thrown) => {
      noteFailure(span, thrown, isFault);
      throw thrown;
    })
    .finally(() => span.end());

/** The messages of a stream; the span ends with them. It may last for days, so nothing else of its call is kept here. */
async function* streamed<T>(span: Span, messages: AsyncIterable<T>, isFault: IsFault): AsyncGenerator<T, void> {
  try {
    yield* messages;
  } catch (thrown) {
    noteFailure(span, thrown, isFault);
    throw thrown;
  } finally {
    span.end();
  }
}

/** To its caller every call that fails is a failure. */
const always = () => true;

/** `url` is that of the replica; undefined for a service of this process. Without traces `next` is all there is. */
export function withSpans(next: Transport, tracing: Tracing | undefined, url?: string): Transport {
  if (!tracing) return next;
  const server = url === undefined ? {} : addressOf(new URL(url));

  /** Undefined for a call that is no part of a trace that is recorded. */
  function begin(method: DescMethod, init: HeadersInit | undefined) {
    const headers = plainHeaders(init);
    const parent = readTraceparent(headers[TRACEPARENT]);
    if (!parent?.sampled) return undefined;
    const name = rpcName(method);
    const origin = { ...parent, state: headers[TRACESTATE] };
    const span = (tracing as Tracing).start(name, "client", origin, { ...spanAttributes(name), ...server });
    return { span, headers: { ...headers, ...traceHeaders(span.context) } };
  }

  return {
    unary(method, signal, timeoutMs, init, input, contextValues) {
      const begun = begin(method, init);
      if (!begun) return next.unary(method, signal, timeoutMs, init, input, contextValues);
      return answered(begun.span, next.unary(method, signal, timeoutMs, begun.headers, input, contextValues), always);
    },
    async stream(method, signal, timeoutMs, init, input, contextValues) {
      const begun = begin(method, init);
      if (!begun) return next.stream(method, signal, timeoutMs, init, input, contextValues);
      const { span, headers } = begun;
      try {
        const answer = await next.stream(method, signal, timeoutMs, headers, input, contextValues);
        return { ...answer, message: streamed(span, answer.message, always) };
      } catch (thrown) {
        noteFailure(span, thrown, always);
        span.end();
        throw thrown;
      }
    },
  };
}

const addressOf = (url: URL) => ({
  [ATTR_SERVER_ADDRESS]: hostOfUrl(url),
  [ATTR_SERVER_PORT]: Number(url.port || (url.protocol === "https:" ? 443 : 80)),
});

/** Errors of the server, whatever the caller sent ("Semantic conventions for gRPC", status of server spans). */
const FAULTS: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

/**
 * The calls that a dispatcher runs, each from its admission to its answer. `isOwn`: whether one of the system's own processes
 * calls.
 */
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
    const name = rpcName(method);
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
