/** Forwards the RPCs of the public services, by their descriptors alone. */
import {
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type Message,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import {
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createContextKey,
  type HandlerContext,
  type Transport,
} from "@connectrpc/connect";
import { createAsyncIterable, mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { callHeaders } from "@petstore/rpc/call";
import { isServed, isUnary } from "@petstore/rpc/server/handlers";
import { until } from "@petstore/rpc/server/until";
import { arrivedTooLate, createErrorExit, HttpError, unexplained } from "connect-transcoder";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import type { FastifyRequest } from "fastify";
import { errorOptions, type Reason, reasonOf, rpcError } from "#errors";
import type { RpcEndpointOptions } from "./rpc-endpoint.ts";

/** The HTTP request that an RPC came with, and whether its message could be read. */
export interface Exchange {
  readonly request: FastifyRequest;
  decoded: boolean;
}

export const exchangeKey = createContextKey<Exchange | undefined>(undefined);

export function exchangeOf({ values }: { readonly values?: ContextValues | undefined }): Exchange {
  const exchange = values?.get(exchangeKey);
  if (!exchange) throw new Error("An RPC came without its HTTP request.");
  return exchange;
}

export const isSafe = ({ idempotency }: DescMethod): boolean => idempotency === Level.NO_SIDE_EFFECTS;

/**
 * Adds the RPCs of a service to a router. The caller's message goes to the transport with the headers that the petstore's
 * processes trust and none of the caller's own. The messages, headers, trailers and errors of the service come back.
 */
export function forward(
  router: ConnectRouter,
  { desc, transport }: { readonly desc: DescService; readonly transport: Transport },
  { clock, limits: { requestMs }, draining = new AbortController().signal }: Omit<RpcEndpointOptions, "services">,
): void {
  const unary = (method: DescMethodUnary) => async (message: Message, context: HandlerContext) => {
    const exchange = exchangeOf(context);
    const { request } = exchange;
    exchange.decoded = true;
    const left = Math.min(context.timeoutMs() ?? Number.POSITIVE_INFINITY, request.arrivedAt + requestMs - clock());
    try {
      if (left <= 0) throw arrivedTooLate();
      // Connect reads 0 as "no limit", and takes whole milliseconds.
      const timeoutMs = Math.max(1, Math.ceil(left));
      const answer = await transport.unary(method, context.signal, timeoutMs, callHeaders(request), message as never);
      mergeNonProtocolHeaders(context.responseHeader, answer.header);
      mergeNonProtocolHeaders(context.responseTrailer, answer.trailer);
      return answer.message;
    } catch (thrown) {
      throw toRpcError(thrown, context);
    }
  };

  const streaming = (method: DescMethodServerStreaming) =>
    async function* (message: Message, context: HandlerContext) {
      const exchange = exchangeOf(context);
      exchange.decoded = true;
      const over = new AbortController();
      const answered = async function* () {
        const signal = AbortSignal.any([context.signal, over.signal]);
        const input = createAsyncIterable([message as never]);
        const headers = callHeaders(exchange.request);
        const answer = await transport.stream(method, signal, context.timeoutMs(), headers, input);
        mergeNonProtocolHeaders(context.responseHeader, answer.header);
        yield* answer.message;
        mergeNonProtocolHeaders(context.responseTrailer, answer.trailer);
      };
      const { ended } = exchange.request;
      try {
        const answers = ended ? until(ended, answered(), () => ended.reason) : answered();
        yield* until(draining, answers, () => rpcError("UNAVAILABLE", STOPS));
      } catch (thrown) {
        throw toRpcError(thrown, context);
      } finally {
        over.abort();
      }
    };

  for (const method of desc.methods.filter(isServed))
    router.rpc(method, (isUnary(method) ? unary(method) : streaming(method)) as never);
}

const STOPS = "The gateway stops. Call again: another one goes on.";

const failureOf = createErrorExit(errorOptions);

/** The error for the caller: the service's own if it has a reason, else the one that the HTTP API would give. */
export function toRpcError(thrown: unknown, context: HandlerContext): ConnectError {
  const { request } = exchangeOf(context);
  const said = reasonOf(thrown)?.reason;
  const error =
    thrown instanceof HttpError
      ? thrown
      : thrown instanceof ConnectError && said
        ? new HttpError(said, thrown.rawMessage)
        : unexplained(thrown, isSafe(context.method));
  const { record, headers } = failureOf(error, request.id);
  const isOurs = !said && !(thrown instanceof HttpError);
  request.log[isOurs && !context.signal.aborted ? "warn" : "debug"]({ err: thrown }, record.code);
  const isReasoned = thrown instanceof ConnectError && said !== undefined;
  const answered = isReasoned ? thrown : rpcError(record.code as Reason, record.message, thrown);
  if (isReasoned) answered.details = answered.details.map(legible);
  const metadata = request.response?.headersSent ? context.responseTrailer : context.responseHeader;
  for (const [name, value] of Object.entries(headers)) {
    metadata.set(name, value);
    answered.metadata.delete(name); // else it would be sent twice
  }
  return answered;
}

const legibleTypes = new Map<string, DescMessage>(
  [ErrorInfoSchema, ViolationsSchema].map((desc) => [desc.typeName, desc]),
);

/** Decodes a detail of a known type: Connect adds decoded details to its JSON errors in readable form. */
function legible(detail: ConnectError["details"][number]): ConnectError["details"][number] {
  const desc = "type" in detail ? legibleTypes.get(detail.type) : undefined;
  return desc && "type" in detail ? { desc, value: fromBinary(desc, detail.value) } : detail;
}
