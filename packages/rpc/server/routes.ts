/** Routes the calls that Connect receives to a dispatcher. */
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Closing } from "../admission/admission.ts";
import type { Principal } from "../call.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { onAbort } from "./until.ts";

export type Served = DescMethodUnary | DescMethodServerStreaming;
export const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";
export const isServerStreaming = (method: DescMethod): method is DescMethodServerStreaming =>
  method.methodKind === "server_streaming";
export const isServed = (method: DescMethod): method is Served => isUnary(method) || isServerStreaming(method);

/** The network that a request came from, see `callerAddress`, and its response. */
export interface RequestOrigin {
  readonly network: string;
  readonly response: Closing;
  /** Counts the response as a stream, which no longer takes from what short requests share. */
  countAsStream(): void;
}

/** What is known of a caller before the message is read. */
export interface Caller {
  /** Its connection has proved, before its headers were read, to be one of the system's own processes. */
  readonly isPeer?: true;
  readonly origin?: RequestOrigin;
  /** Whether it comes from a proxy that the operator trusts. */
  readonly isProxy?: boolean;
  /** Who calls, if callers are authenticated. */
  principal?: Principal;
}
export const callerKey = createContextKey<Caller>(Object.freeze({}));

export function addRoutes(
  router: ConnectRouter,
  methods: readonly { readonly method: Served }[],
  { invoke, stream }: Pick<Dispatcher, "invoke" | "stream">,
): void {
  const unary = (method: DescMethodUnary) => async (request: Message, context: HandlerContext) => {
    const answer = await invoke(method, request, {
      ...context.values.get(callerKey),
      headers: context.requestHeader,
      timeoutMs: context.timeoutMs(),
      signal: context.signal,
    });
    answer.headers.forEach((value, name) => void context.responseHeader.append(name, value));
    return answer.message;
  };
  const streaming = (method: DescMethodServerStreaming) => (request: Message, context: HandlerContext) =>
    stream(method, request, {
      ...context.values.get(callerKey),
      headers: context.requestHeader,
      timeoutMs: context.timeoutMs(),
      whenGone: (end) => onAbort(context.signal, end),
      responseHeaders: context.responseHeader,
    });
  for (const { method } of methods) router.rpc(method, (isUnary(method) ? unary(method) : streaming(method)) as never);
}
