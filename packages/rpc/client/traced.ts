/** A span for each attempt of a call: repeats of a call, and the same call to another replica, have one each. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { readTraceparent, TRACEPARENT, TRACESTATE, traceHeaders } from "@petstore/trace/context";
import { ATTR_SERVER_ADDRESS, ATTR_SERVER_PORT } from "@petstore/trace/names";
import type { Tracing } from "@petstore/trace/tracing";
import { hostOfUrl } from "../http/address.ts";
import { methodName } from "../server/run.ts";
import { answered, noteFailure, spanAttributes, streamed } from "../server/traced.ts";
import { plainHeaders } from "./layers.ts";

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
    const name = methodName(method);
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
