/** Where every request comes in: how it is named and read, when it arrived, and whether its head can be taken at all. */
import type { Server } from "node:http";
import type { FastifyHttpOptions, FastifyInstance } from "fastify";
import { fieldError, HttpError } from "../errors/http-error.ts";
import {
  checkSizes,
  hostProblem,
  makeRoutable,
  parserLimit,
  restoreMethod,
  splitTarget,
  transferProblem,
} from "../request/http.ts";
import { isWellEncoded } from "../request/parameters.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "../request/request-id.ts";
import { commonHeaders, errorAnswers } from "./error-answers.ts";
import { parserError } from "./node-http.ts";
import { type Limits, type ServerOptions, serverDefaults, type TranscoderOptions } from "./options.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** When the request arrived, on the server's clock. */
    arrivedAt: number;
    /** The id of the request in whose name the service was called: of several that are answered by one call, the first. */
    calledAs: string;
  }
}

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
  services.some(({ desc }) => desc.methods.some(({ methodKind: kind }) => !/^(unary|server_streaming)$/.test(kind)));

/** A target that the router can always read: without scheme and host, and with percent signs that mean no character. */
function routable(target: string): string {
  const { path, query } = splitTarget(target);
  return `${isWellEncoded(path) ? path : path.replaceAll("%", "%25")}${query === "" ? "" : `?${query}`}`;
}

/**
 * Notes when requests arrive, sets the headers of all answers, and sends errors in the form that the options say. The plugin
 * does this itself. Call it first if another plugin, such as CORS, is registered before: then its answers have all this, too.
 */
export function markArrivals(app: FastifyInstance, options: ServerOptions): void {
  if (app.hasRequestDecorator("arrivedAt")) return;
  const { apiVersion, clock } = serverDefaults(options);
  app.setErrorHandler(errorAnswers(options).send);
  app.decorateRequest("arrivedAt", 0);
  app.decorateRequest("calledAs", "");
  app.addHook("onRequest", (request, reply, done) => {
    restoreMethod(request.raw);
    request.arrivedAt = clock();
    reply.headers(commonHeaders(request.id, apiVersion));
    done();
  });
}

/** Refuses requests whose head is too large, or can't be what their sender meant. */
export function checkHeads(app: FastifyInstance, limits: Limits): void {
  app.addHook("onRequest", (request, _, done) => {
    checkSizes(request, limits);
    const problem = hostProblem(request.raw);
    if (problem !== undefined) throw fieldError("INVALID_HEADER", "Host", problem);
    const coding = transferProblem(request.raw);
    if (coding !== undefined) throw new HttpError("NOT_IMPLEMENTED", coding, { connection: "close" });
    done();
  });
}
