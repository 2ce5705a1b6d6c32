/**
 * The contract of the Connect conformance suite, read from the image that `buf build` makes of the suite's own protos. The
 * types of the members that are used here are written by hand.
 */
import { readFileSync } from "node:fs";
import { createFileRegistry, type FileRegistry, fromBinary, type Message } from "@bufbuild/protobuf";
import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";
import { type Any, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const PACKAGE = "connectrpc.conformance.v1";

export interface Header {
  readonly name: string;
  readonly value: readonly string[];
}
export interface ErrorAnswer {
  readonly code: number;
  readonly message?: string;
  readonly details: readonly Any[];
}

/** The response that a request asks for. */
export interface AnyAnswer {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
  readonly responseDelayMs: number;
}
export interface OneAnswer extends AnyAnswer {
  readonly response:
    | { readonly case: "responseData"; readonly value: Uint8Array }
    | { readonly case: "error"; readonly value: ErrorAnswer }
    | { readonly case: undefined; readonly value?: undefined };
}
export interface ManyAnswers extends AnyAnswer {
  readonly responseData: readonly Uint8Array[];
  readonly error?: ErrorAnswer;
}

/** What the service received. */
export interface RequestInfo {
  readonly requestHeaders?: Header[];
  readonly timeoutMs?: bigint | undefined;
  readonly requests: Any[];
  readonly connectGetInfo?: { queryParams: Header[] } | undefined;
}

export type Request<A> = Message & { readonly responseDefinition?: A; readonly fullDuplex?: boolean };
export type Response = Message & { payload?: { data?: Uint8Array; requestInfo?: RequestInfo } };
type Method<K, A> = { methodKind: K; input: GenMessage<Request<A>>; output: GenMessage<Response> };

export interface Contract {
  readonly service: GenService<{
    unary: Method<"unary", OneAnswer>;
    idempotentUnary: Method<"unary", OneAnswer>;
    serverStream: Method<"server_streaming", ManyAnswers>;
    clientStream: Method<"client_streaming", OneAnswer>;
    bidiStream: Method<"bidi_streaming", ManyAnswers>;
  }>;
  readonly requestInfo: GenMessage<Message & RequestInfo>;
  /** What the suite writes to standard input, and what it reads from standard output. */
  readonly serverRequest: GenMessage<
    Message & {
      /** Most bytes of a message; 0 leaves it to the server. */
      readonly messageReceiveLimit: number;
      readonly useTls: boolean;
      /** The server's certificate and its key, as PEM. */
      readonly serverCreds?: { readonly cert: Uint8Array; readonly key: Uint8Array };
    }
  >;
  readonly serverResponse: GenMessage<Message & { host: string; port: number; pemCert: Uint8Array }>;
  /** For the messages within `Any`. */
  readonly registry: FileRegistry;
}

export function readContract(imagePath: string): Contract {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(imagePath)));
  const message = <M extends Message>(name: string) => registry.getMessage(`${PACKAGE}.${name}`) as GenMessage<M>;
  return {
    service: registry.getService(`${PACKAGE}.ConformanceService`) as unknown as Contract["service"],
    requestInfo: message("ConformancePayload.RequestInfo"),
    serverRequest: message("ServerCompatRequest"),
    serverResponse: message("ServerCompatResponse"),
    registry,
  };
}
