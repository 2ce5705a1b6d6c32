/**
 * Connect and gRPC-Web on the same origin as the HTTP API. Nothing is implemented again here: bytes go to the service
 * and back as they are. What can be reached is a list made from descriptors.
 */
import type { Readable } from "node:stream";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import replyFrom from "@fastify/reply-from";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Secret } from "#shared/config.ts";
import { type Balancer, isSilence } from "#shared/rpc/balancer.ts";
import { ANONYMOUS, CALLER_HEADER, REQUEST_ID_HEADER, SECRET_HEADER } from "#shared/rpc/call.ts";
import { fault } from "#shared/rpc/fault.ts";
import type { Limits } from "./config.ts";
import { sendFault } from "./rpc-fault.ts";
import { metered, TooLarge } from "./rpc-meter.ts";
import { Refusal } from "./transcoder/refusal.ts";

export interface RpcDoorOptions {
  readonly basePath: string;
  /** Each public service, and who says which of its replicas is next. */
  readonly services: readonly { readonly desc: DescService; readonly balancer: Balancer }[];
  readonly limits: Pick<Limits, "rpcBytes" | "requestMs">;
  /** Makes the services believe who is calling. */
  readonly secret: Secret;
  /** Says who is calling, or throws a Refusal. By default nobody is asked. */
  readonly identify?: (request: FastifyRequest) => Promise<string> | string;
}

/** A service that is alive answers within the time itself; after this much more it is taken to be stuck. */
const GRACE_MS = 1000;

/** gRPC-Web puts five bytes in front of a message. */
const FRAME_BYTES = 5;

export const rpcDoor = (options: RpcDoorOptions) => async (app: FastifyInstance) => {
  const patience = options.limits.requestMs + GRACE_MS;
  await app.register(replyFrom, {
    undici: { headersTimeout: patience, bodyTimeout: patience },
    retryMethods: [], // the answer of a service is passed on, whatever it is
    disableRequestLogging: true,
    destroyAgent: true,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, body, done) => done(null, body));
  for (const { desc, balancer } of options.services)
    for (const method of desc.methods.filter(({ methodKind }) => methodKind === "unary")) {
      const path = `/${desc.typeName}/${method.name}`;
      app.route({
        method: isSafe(method) ? ["GET", "POST"] : ["POST"],
        url: options.basePath + path,
        exposeHeadRoute: false,
        handler: forwarder(path, balancer, options),
      });
    }
};

/** Connect lets what has no side effects be called by GET. */
const isSafe = ({ idempotency }: DescMethod): boolean => idempotency === Level.NO_SIDE_EFFECTS;

function forwarder(path: string, balancer: Balancer, { limits, secret, identify = () => ANONYMOUS }: RpcDoorOptions) {
  const maxBytes = limits.rpcBytes + FRAME_BYTES;
  return async (request: FastifyRequest, reply: FastifyReply) => {
    if (isGrpc(request))
      throw new Refusal(
        "UNSUPPORTED_MEDIA_TYPE",
        "gRPC needs HTTP/2: call the service itself, or use gRPC-Web or Connect.",
      );
    const caller = await identify(request);
    if (Number(request.headers["content-length"] ?? 0) > maxBytes) return sendFault(reply, tooLarge(limits.rpcBytes));
    if (request.body) request.body = metered(request.body as Readable, maxBytes);
    const replica = balancer.next();
    return reply.from(`${replica.url}${path}`, {
      rewriteRequestHeaders: (_, headers) => ({
        ...without(headers, (name) => isUntrusted(name) || isForOneConnection(name)),
        [REQUEST_ID_HEADER]: request.id,
        [CALLER_HEADER]: caller,
        [SECRET_HEADER]: secret.reveal(),
      }),
      rewriteHeaders: (headers) => without(headers, isForOneConnection),
      onError: (_, { error }) => {
        const failure = faultOf(error, limits.rpcBytes);
        if (isSilence(failure) && !request.socket.destroyed) balancer.failed(replica);
        return sendFault(reply, failure);
      },
    });
  };
}

// gRPC's trailers would be lost on the way.
const isGrpc = ({ headers }: FastifyRequest): boolean =>
  /^application\/grpc($|[+;])/.test(headers["content-type"] ?? "");

const without = <H extends object>(headers: H, isUnwanted: (name: string) => boolean): H =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !isUnwanted(name))) as H;

/** Headers that concern one connection only (RFC 9110, 7.6.1). */
const isForOneConnection = (name: string): boolean =>
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect)$/.test(name);

/** Headers that the petstore's own processes believe are never taken from outside. */
const isUntrusted = (name: string): boolean => name.startsWith("x-petstore-");

const tooLarge = (rpcBytes: number) => fault("PAYLOAD_TOO_LARGE", `The message is larger than ${rpcBytes} bytes.`);

function faultOf(error: Error & { statusCode?: number; cause?: unknown }, rpcBytes: number) {
  if (error.cause instanceof TooLarge) return tooLarge(rpcBytes);
  if (error.statusCode === 504)
    return fault(
      "DEADLINE_EXCEEDED",
      "The service did not answer in time. A write may or may not have happened.",
      error,
    );
  return fault("UNAVAILABLE", "The service can't be reached now. A write may or may not have happened.", error);
}
