/** Options that Fastify needs before a plugin is registered. */
import type { Server } from "node:http";
import type { FastifyHttpOptions, FastifyInstance } from "fastify";
import { makeRoutable, parserLimit, splitTarget } from "../request/head.ts";
import { isWellEncoded } from "../request/path.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "../request/request-id.ts";
import { errorAnswers } from "./error-answers.ts";
import { parserError } from "./node-http.ts";
import { serverDefaults, type TranscoderOptions } from "./options.ts";

/**
 * Options for `fastify()`, so that the transcoder also answers requests that Fastify and Node would answer themselves: those
 * that are too large, too slow or not HTTP, and those with an unknown method or a path that can't be decoded. Takes the options
 * of the plugin. Add a logger and other options of your own.
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
      requireHostHeader: false, // the transcoder checks it, and answers in its own form
    },
    // Node's limit is for all of a request, which a stream of them may take longer than. Other bodies have the same limit elsewhere.
    requestTimeout: mayTakeStreams(options) ? 0 : limits.requestMs,
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

/** Whether a body may be a stream of requests. */
export const mayTakeStreams = ({ services = [] }: Pick<Partial<TranscoderOptions>, "services">): boolean =>
  services.some(({ desc }) => desc.methods.some(({ methodKind }) => !ONE_REQUEST.includes(methodKind)));

const ONE_REQUEST: readonly string[] = ["unary", "server_streaming"];

/** A target that the router can always read: without scheme and host, and with percent signs that mean no character. */
function routable(target: string): string {
  const { path, query } = splitTarget(target);
  return `${isWellEncoded(path) ? path : path.replaceAll("%", "%25")}${query === "" ? "" : `?${query}`}`;
}
