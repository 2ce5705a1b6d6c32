/**
 * Connect and gRPC-Web on the same origin as the HTTP API, by Connect's own plugin for Fastify. The RPCs come from
 * descriptors, and all of them are forwarded. A message is read whole, within its size limit and the time limit of its
 * request, before the service is called.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, createContextValues, type Transport } from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { rpcName } from "@petstore/rpc/call";
import type { PlainAnswer } from "@petstore/rpc/http/answers";
import {
  beforeFailure,
  dropEndlessTimeout,
  ensureQuery,
  explainDecoding,
  knownFields,
  limitedCompressions,
  strictJson,
} from "@petstore/rpc/server/connect";
import { isServed } from "@petstore/rpc/server/handlers";
import { limitCall } from "@petstore/rpc/server/message-limit";
import { judgeTypes, unknownRpcAnswer } from "@petstore/rpc/server/refused-calls";
import { endedBy } from "@petstore/rpc/server/until";
import type { Runtime } from "@petstore/runtime/clock";
import { HttpError, splitTarget } from "connect-transcoder";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from "fastify";
import { errors } from "#errors";
import type { GatewayPlugin } from "./app.ts";
import type { GatewayLimits } from "./config.ts";
import { exchangeKey, exchangeOf, forward, isSafe, toRpcError } from "./rpc-proxy.ts";

export interface RpcEndpointOptions extends Pick<Runtime, "clock"> {
  readonly basePath: string;
  readonly services: readonly { readonly desc: DescService; readonly transport: Transport }[];
  /** A unary RPC has `requestMs` from the arrival of its request. A stream has no limit but its caller's own. */
  readonly limits: Pick<GatewayLimits, "rpcBytes" | "requestMs">;
  /** Ends streams between two messages. Their callers reconnect and continue after the last message that they have. */
  readonly draining?: AbortSignal | undefined;
}

export const rpcEndpoint =
  (options: RpcEndpointOptions): GatewayPlugin =>
  async (app) => {
    const { services, limits } = options;
    app.removeAllContentTypeParsers();

    const connect: Parameters<typeof fastifyConnectPlugin>[1] = {
      grpc: false,
      readMaxBytes: limits.rpcBytes,
      acceptCompression: limitedCompressions(errors),
      binaryOptions: knownFields,
      jsonOptions: strictJson,
      contextValues: (request) => createContextValues().set(exchangeKey, { request, decoded: false }),
      requestGate: async (context) => {
        beforeFailure(context, (error) => {
          if (!exchangeOf(context).decoded) explainDecoding(error, errors, [Code.Unimplemented]);
        });
        const { request } = exchangeOf(context);
        try {
          await app.admit(request, context.method);
        } catch (thrown) {
          app.countRefusal(thrown);
          throw toRpcError(thrown, context);
        }
        ensureQuery(context, errors);
      },
      routes: (router) => {
        for (const service of services) forward(router, service, options);
        for (const [i, handler] of router.handlers.entries())
          router.handlers[i] = Object.assign(async (call: UniversalServerRequest) => {
            const { request } = exchangeOf({ values: call.contextValues });
            dropEndlessTimeout(call.header);
            const limited = limitCall(call, request.raw, handler.method, limits.rpcBytes, errors);
            const answer = await handler(limited);
            // The plugin sends its answers past Fastify's hooks, one of which adds the rate headers.
            for (const [name, value] of Object.entries(app.rateHeaders(request)))
              request.response?.setHeader(name, value);
            return answer.body && handler.method.methodKind !== "unary"
              ? { ...answer, body: endedBy(call.signal, answer.body) }
              : answer;
          }, handler);
      },
    };
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    fastifyConnectPlugin(routed(app, options), connect, (error) => (error ? reject(error) : resolve()));
    await promise;
  };

/**
 * The Fastify instance, adapted because the plugin (2.2) does two things wrong: it registers its paths for every HTTP
 * method, and its handler returns without an answer or an error from a request that it could not answer.
 */
function routed(app: FastifyInstance, { basePath, services }: RpcEndpointOptions): FastifyInstance {
  const methods = services.flatMap(({ desc }) => desc.methods.filter(isServed));
  const byPath = new Map(methods.map((method) => [`/${rpcName(method)}`, method]));
  const all = (path: string, _options: object, handle: RouteHandlerMethod) => {
    const method = byPath.get(path) as DescMethod;
    const judge = judgeTypes(method, errors, NOT_GRPC);
    app.route({
      method: isSafe(method) ? ["GET", "POST"] : ["POST"],
      url: basePath + path,
      exposeHeadRoute: false,
      onRequest(request, reply, done) {
        // Without this, the answer to a GET may be cached (RFC 9111, 4.2.2) and given to others who send the same request.
        if (request.method === "GET") reply.header("cache-control", "no-store");
        const refusal = judge(request.raw, splitTarget(request.originalUrl).query);
        if (refusal?.answer) return sendAnswer(app, reply, refusal.answer);
        if (refusal) throw new HttpError("UNSUPPORTED_MEDIA_TYPE", refusal.message, refusal.headers);
        done();
      },
      handler: async (request, reply) => {
        await handle.call(app, request, reply);
        if (!reply.raw.headersSent) throw new Error("Connect's plugin gave no answer.");
        if (!reply.raw.writableEnded) reply.raw.destroy();
      },
    });
  };
  return Object.create(app, { all: { value: all } });
}

// Its trailers would be lost on the way.
const NOT_GRPC = "The gateway does not speak gRPC: call the service itself, or use gRPC-Web or Connect.";

/** An RPC's path has the service's full name, with its package; no path of the HTTP API looks like that. */
const RPC_PATH = /\/\w+(\.\w+)+\/\w+$/;

/** Answers a call of an unknown RPC in its own protocol, not with the 404 of the HTTP API. False for what is no such call. */
export function answerUnknownRpc(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): boolean {
  const { path, query } = splitTarget(request.url);
  if (!RPC_PATH.test(path) || isAnybodysJson(request)) return false;
  // There is one, but not by this method.
  if (app.hasRoute({ method: "POST", url: path })) return false;
  const answer = unknownRpcAnswer(request, query, errors);
  if (answer) sendAnswer(app, reply, answer);
  return answer !== undefined;
}

/** Answers a call that is not forwarded, with what the gateway says in every answer. */
function sendAnswer(app: FastifyInstance, reply: FastifyReply, { status, headers, body }: PlainAnswer): void {
  if (body.length > 0) return void reply.code(status).headers(headers).send(Buffer.from(body));
  // A Trailers-Only response is one frame. Fastify would send an empty second one, and then gRPC's own clients see no
  // status.
  reply.hijack();
  reply.raw.statusCode = status;
  for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...headers, ...app.rateHeaders(reply.request) }))
    reply.raw.setHeader(name, value as string);
  reply.raw.end();
}

/** Whether it is plain JSON without the header that Connect's clients send. */
const isAnybodysJson = ({ method, headers }: FastifyRequest): boolean =>
  method === "POST" &&
  headers["connect-protocol-version"] === undefined &&
  /^application\/json\s*($|;)/i.test(headers["content-type"] ?? "");
