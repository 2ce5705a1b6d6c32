/** The handlers of a service, one for each of its RPCs. */
import type {
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Call } from "../call.ts";

/** A server-streaming call. It has no request headers, for these are not kept while the stream is open. */
export interface StreamingCall extends Omit<Call, "headers"> {
  /** Aborts when the stream has to end: its caller has gone, is late or no longer admitted, or the process stops. */
  readonly signal: AbortSignal;
  /**
   * Aborts when the process stops. The stream should then send what its caller needs to continue elsewhere, and end; after
   * `drainMs` it is ended with UNAVAILABLE. For a stream that begins while the process stops, it is already aborted.
   */
  readonly draining: AbortSignal;
}

/** Handles one RPC, unary or server-streaming. Every error that it throws becomes one of the catalogue. */
export type Handler<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => Promise<MessageInitShape<O>> | MessageInitShape<O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: StreamingCall) => AsyncIterable<MessageInitShape<O>>
      : never;

export type Served = DescMethodUnary | DescMethodServerStreaming;
export const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";
export const isServerStreaming = (method: DescMethod): method is DescMethodServerStreaming =>
  method.methodKind === "server_streaming";
export const isServed = (method: DescMethod): method is Served => isUnary(method) || isServerStreaming(method);

/** A handler for every RPC of a service. */
export type Handlers<S extends DescService> = { [K in keyof S["method"]]: Handler<S["method"][K]> };

export type Init = MessageInitShape<DescMethod["output"]>;
export type UnaryHandler = (request: Message, call: Call) => Promise<Init> | Init;
export type StreamHandler = (request: Message, call: StreamingCall) => AsyncIterable<Init>;

/** A service together with its handlers. */
export interface Implementation {
  readonly desc: DescService;
  readonly handlers: Readonly<Record<string, UnaryHandler | StreamHandler>>;
  /** Its unary calls are always admitted, however many others are running: they tell how the process is. */
  readonly isDiagnostic: boolean;
}
export const implement = <S extends DescService>(
  desc: S,
  handlers: Handlers<S>,
  { isDiagnostic = false } = {},
): Implementation => ({ desc, handlers: handlers as unknown as Implementation["handlers"], isDiagnostic });
