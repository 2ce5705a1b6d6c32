/** A span for each attempt of a call: repeats of a call, and the same call to another replica, have one each. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { readTraceparent, TRACEPARENT, TRACESTATE, traceHeaders } from "@petstore/trace/context";
import { ATTR_SERVER_ADDRESS, ATTR_SERVER_PORT } from "@petstore/trace/names";
import type { Span, Tracing } from "@petstore/trace/tracing";
import { hostOfUrl } from "../http/address.ts";
import { methodName } from "../server/run.ts";
import { noteFailure, spanAttributes } from "../server/traced.ts";

/** `url` is that of the replica; undefined for a service of this process. Without traces `next` is all there is. */
export function withSpans(next: Transport, tracing: Tracing | undefined, url?: string): Transport {
  if (!tracing) return next;
  const server = url === undefined ? {} : addressOf(new URL(url));

  /** Undefined for a call that is no part of a trace. */
  function begin(method: DescMethod, init: HeadersInit | undefined) {
    const headers = plain(init);
    const parent = readTraceparent(headers[TRACEPARENT]);
    if (!parent) return undefined;
    const name = methodName(method);
    const origin = { ...parent, state: headers[TRACESTATE] };
    const span = (tracing as Tracing).start(name, "client", origin, { ...spanAttributes(name), ...server });
    return { span, headers: { ...headers, ...traceHeaders(span.context) } };
  }
  const failed = (span: Span, thrown: unknown) => noteFailure(span, thrown, () => true);

  async function answered<A>(span: Span, answer: Promise<A>): Promise<A> {
    try {
      return await answer;
    } catch (thrown) {
      failed(span, thrown);
      throw thrown;
    } finally {
      span.end();
    }
  }

  return {
    unary(method, signal, timeoutMs, init, input, contextValues) {
      const begun = begin(method, init);
      if (!begun) return next.unary(method, signal, timeoutMs, init, input, contextValues);
      return answered(begun.span, next.unary(method, signal, timeoutMs, begun.headers, input, contextValues));
    },
    async stream(method, signal, timeoutMs, init, input, contextValues) {
      const begun = begin(method, init);
      if (!begun) return next.stream(method, signal, timeoutMs, init, input, contextValues);
      const { span, headers } = begun;
      try {
        const answer = await next.stream(method, signal, timeoutMs, headers, input, contextValues);
        return { ...answer, message: until(span, answer.message) };
      } catch (thrown) {
        failed(span, thrown);
        span.end();
        throw thrown;
      }
    },
  };

  async function* until<T>(span: Span, messages: AsyncIterable<T>): AsyncIterable<T> {
    try {
      yield* messages;
    } catch (thrown) {
      failed(span, thrown);
      throw thrown;
    } finally {
      span.end();
    }
  }
}

const addressOf = (url: URL) => ({
  [ATTR_SERVER_ADDRESS]: hostOfUrl(url),
  [ATTR_SERVER_PORT]: Number(url.port || (url.protocol === "https:" ? 443 : 80)),
});

/** Most callers pass a plain object with names in lower case. */
const plain = (init: HeadersInit | undefined): Record<string, string> =>
  init && Object.getPrototypeOf(init) === Object.prototype
    ? (init as Record<string, string>)
    : Object.fromEntries(new Headers(init));
