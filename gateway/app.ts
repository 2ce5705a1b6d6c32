/** Builds the gateway: what every request goes through, the operations of the services, and the plugins beside them. */
import type { Duplex } from "node:stream";
import type { DescEnum, DescMethod, DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { callHeaders, isRequestId, newRequestId, REQUEST_ID_HEADER } from "@petstore/rpc/call";
import { type ConnectionLimits, defaultConnectionLimits, guardConnections } from "@petstore/rpc/server/connections";
import { operationsOf } from "connect-transcoder/contract/operations";
import { HttpError } from "connect-transcoder/errors/http-error";
import type { DeprecationPolicy } from "connect-transcoder/policy/deprecation";
import { varyByAccept, wantsProblem } from "connect-transcoder/policy/media";
import { hostProblem } from "connect-transcoder/request/host";
import { isWellEncoded, splitTarget } from "connect-transcoder/request/path";
import { checkSizes, parserLimit, type SizeLimits } from "connect-transcoder/request/sizes";
import { registerOperations, type TranscoderOptions } from "connect-transcoder/server/routes";
import { answerUnrouted } from "connect-transcoder/server/unrouted";
import { parserError, takeOddRequests, writeResponse } from "connect-transcoder/server/wire";
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from "fastify";
import type { Logger } from "pino";
import { type Auth, addAuth } from "./auth.ts";
import { createErrorExit, errorBody } from "./errors.ts";

/** Version of the HTTP interface, sent with every answer. */
export const API_VERSION = "1.0.0";

/** An error says what was so at one moment. */
const NOT_STORED = { "cache-control": "no-store" };

/** A part of the gateway beside the operations. */
export interface GatewayPlugin {
  /** Adds its routes, in a scope of their own. */
  (app: FastifyInstance): Promise<void>;
  /** Adds to all requests, before any is refused for want of a route. */
  readonly everywhere?: (app: FastifyInstance) => void;
}

export interface GatewayOptions {
  readonly services: readonly { readonly desc: DescService; readonly transport: Transport }[];
  /** The catalogue of error codes: an enum whose values carry the option `error`. */
  readonly reasons: DescEnum;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly limits: SizeLimits & TranscoderOptions["limits"];
  readonly connections?: ConnectionLimits;
  /** In front of every path, such as "/api"; empty for none. */
  readonly basePath: string;
  readonly deprecation?: DeprecationPolicy;
  readonly auth: Auth;
  /** What concerns every answer, whichever route it comes from, such as CORS. */
  readonly everywhere?: (app: FastifyInstance) => Promise<void>;
  /** What the gateway serves beside the operations: its document, health, the RPC endpoint. */
  readonly plugins?: readonly GatewayPlugin[];
}

/** The gateway, ready but not listening. @throws Error when an annotation of a service can't be served */
export async function buildGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { log, clock, random, limits, basePath } = options;
  const failureOf = createErrorExit(options.reasons);

  const app: FastifyInstance = fastify({
    loggerInstance: log as FastifyBaseLogger,
    // One line for each request, when its answer is out.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    genReqId: ({ headers }) => {
      const given = String(headers[REQUEST_ID_HEADER] ?? "");
      return isRequestId(given) ? given : newRequestId(random);
    },
    http: {
      maxHeaderSize: parserLimit(limits),
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(1000, limits.requestMs),
      requireHostHeader: false, // checked below, so that the answer is a record
    },
    requestTimeout: limits.requestMs,
    bodyLimit: limits.bodyBytes,
    return503OnClosing: false, // what arrives while the gateway closes is still served
    routerOptions: { maxParamLength: parserLimit(limits) },
    rewriteUrl: ({ url = "/" }) => routable(url),
    frameworkErrors: (error, request, reply) => sendError(error, request, reply as never),
    clientErrorHandler: (error, socket) => {
      log.debug({ err: error }, "not an HTTP request");
      refuse(parserError(error, limits), socket);
    },
  });
  guardConnections(app.server, options.connections ?? defaultConnectionLimits, { log });
  app.setErrorHandler(sendError);
  app.decorateRequest("arrivedAt", 0);
  addAuth(app, options.auth);
  takeOddRequests(app, refuse);

  app.addHook("onRequest", async (request, reply) => {
    request.arrivedAt = clock();
    reply.headers({ [REQUEST_ID_HEADER]: request.id, "api-version": API_VERSION });
  });
  await options.everywhere?.(app);
  for (const { everywhere } of options.plugins ?? []) everywhere?.(app);
  answerUnrouted(app);
  app.addHook("onRequest", async (request) => {
    checkSizes(request, limits);
    const problem = hostProblem(request.raw);
    if (problem !== undefined) throw new HttpError("INVALID_HEADER", `Host: ${problem}`);
  });
  app.addHook("onResponse", async ({ method, originalUrl, caller, log: line }, reply) =>
    line.info({
      ...(caller && { caller }),
      method,
      path: splitTarget(originalUrl).path,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
    }),
  );

  const shared = {
    basePath,
    limits,
    clock,
    deprecation: options.deprecation ?? {},
    authorize: (request: FastifyRequest, { method }: { readonly method: DescMethod }) => app.admit(request, method),
    callHeaders,
  };
  for (const { desc, transport } of options.services) {
    const operations = operationsOf(desc);
    await app.register((scope) => registerOperations(scope, { ...shared, operations, transport }));
  }
  for (const plugin of options.plugins ?? []) await app.register(plugin);
  return app;

  /** For what never became a request. */
  function refuse(error: HttpError, socket: Duplex) {
    const requestId = newRequestId(random);
    const { record, headers } = failureOf(error, requestId);
    const { type, body } = errorBody(record, false);
    const common = { [REQUEST_ID_HEADER]: requestId, "api-version": API_VERSION, "content-type": type };
    writeResponse(socket, { status: record.status, headers: { ...common, ...NOT_STORED, ...headers }, body });
  }

  function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply) {
    const { record, headers } = failureOf(error, request.id);
    const level = record.status < 500 || reply.raw.destroyed ? "debug" : record.status <= 502 ? "error" : "warn";
    request.log[level]({ err: error }, record.code);
    const { type, body } = errorBody(record, wantsProblem(request));
    varyByAccept(reply);
    return reply
      .code(record.status)
      .headers({ ...NOT_STORED, ...headers })
      .type(type)
      .send(body);
  }
}

/** A target that the router can always read: without scheme and host, and with percent signs that mean no character. */
function routable(target: string): string {
  const { path, query } = splitTarget(target);
  return `${isWellEncoded(path) ? path : path.replaceAll("%", "%25")}${query === "" ? "" : `?${query}`}`;
}
