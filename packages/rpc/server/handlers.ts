/** How a service is written down: a handler for each of its RPCs. */
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

/** A call that is answered by a stream. The headers of its request are not kept as long as it lasts. */
export interface StreamingCall extends Omit<Call, "headers"> {
  /**
   * Aborts when the stream has to end: nobody takes its messages any more, for the caller has gone or its time is over, or
   * the process stops.
   */
  readonly signal: AbortSignal;
  /**
   * Aborts when the process stops. The stream is to send what its caller needs to go on elsewhere, and to end; after some
   * seconds it is ended, with UNAVAILABLE. It is aborted already for a stream that comes while the process stops.
   */
  readonly draining: AbortSignal;
}

/**
 * Handles one RPC, unary or server-streaming. It reads like its rule; whatever it throws becomes an error of the
 * catalogue.
 */
export type Handler<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => Promise<MessageInitShape<O>> | MessageInitShape<O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: StreamingCall) => AsyncIterable<MessageInitShape<O>>
      : never;

/** A handler for every RPC of a service. */
export type Handlers<S extends DescService> = { [K in keyof S["method"]]: Handler<S["method"][K]> };

export type Init = MessageInitShape<DescMethod["output"]>;
export type UnaryHandler = (request: Message, call: Call) => Promise<Init> | Init;
export type StreamHandler = (request: Message, call: StreamingCall) => AsyncIterable<Init>;

/** A service together with its handlers. */
export interface Implementation {
  readonly desc: DescService;
  readonly handlers: Readonly<Record<string, UnaryHandler | StreamHandler>>;
  /** Its unary calls are admitted however many others are under way: they tell how the process is. */
  readonly isDiagnostic: boolean;
}
export const implement = <S extends DescService>(
  desc: S,
  handlers: Handlers<S>,
  { isDiagnostic = false } = {},
): Implementation => ({ desc, handlers: handlers as unknown as Implementation["handlers"], isDiagnostic });
