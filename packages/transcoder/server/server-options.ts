/** What a plugin can't tell Fastify any more: it has to be known when the server is made. */
import type { Server } from "node:http";
import type { FastifyHttpOptions, FastifyInstance } from "fastify";
import { makeRoutable, parserLimit, splitTarget } from "../request/head.ts";
import { isWellEncoded } from "../request/path.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "../request/request-id.ts";
import { errorAnswers } from "./error-answers.ts";
import { parserError } from "./node-http.ts";
import { serverDefaults, type TranscoderOptions } from "./options.ts";

/**
 * Options for `fastify()` with which every request gets the answer that the transcoder has for it, also those that
 * Fastify and node would answer by themselves: too large, too slow, not HTTP, with a path that can't be decoded, or with a
 * method that is not registered. Give it the options of the plugin; add a logger and what else is yours.
 */
export function serverOptions(options: Partial<TranscoderOptions> = {}): FastifyHttpOptions<Server> {
  const { limits, random } = serverDefaults(options);
  const { send, refuse } = errorAnswers(options);
  return {
    genReqId: ({ headers }) => requestIdOf(headers[REQUEST_ID_HEADER], headers.traceparent, random),
    http: {
      maxHeaderSize: parserLimit(limits),
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(1000, limits.requestMs),
      requireHostHeader: false, // the transcoder checks it, so that the answer is a record
    },
    requestTimeout: limits.requestMs,
    bodyLimit: limits.bodyBytes,
    return503OnClosing: false, // what arrives while the server closes is still served
    routerOptions: { maxParamLength: parserLimit(limits) },
    rewriteUrl(request) {
      makeRoutable(request);
      return routable(request.url ?? "/");
    },
    frameworkErrors: (error, request, reply) => send(error, request, reply as never),
    clientErrorHandler(this: FastifyInstance, error, socket) {
      if (socket.writable) this.log.debug({ err: error }, "not an HTTP request");
      refuse(parserError(error, limits), socket);
    },
  };
}

/** A target that the router can always read: without scheme and host, and with percent signs that mean no character. */
function routable(target: string): string {
  const { path, query } = splitTarget(target);
  return `${isWellEncoded(path) ? path : path.replaceAll("%", "%25")}${query === "" ? "" : `?${query}`}`;
}
