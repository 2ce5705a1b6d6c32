/** Sends errors: as the answer to a request, as the end of a stream, on a bare socket, or before Fastify sees the request. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { ConnectError } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { selectServed } from "../contract/operations.ts";
import type { ErrorRecord, Failure } from "../errors/error-exit.ts";
import { type ErrorAnswer, errorForms } from "../errors/forms.ts";
import { type HttpError, UpstreamFailure } from "../errors/http-error.ts";
import { deprecationHeaders } from "../policy/deprecation.ts";
import { varyByAccept, wantsProblem } from "../policy/media.ts";
import { responseMetadata } from "../policy/metadata.ts";
import { newRequestId, REQUEST_ID_HEADER, requestIdOf } from "../request/request-id.ts";
import { isGone, writeResponse } from "./node-http.ts";
import { filesOf, type ServerOptions, serverDefaults, type TranscoderOptions, transcoderDefaults } from "./options.ts";
import { createRouter } from "./router.ts";
import { operationOf } from "./routes.ts";

/** Headers of every answer. */
export const commonHeaders = (requestId: string, apiVersion: string): Record<string, string> => ({
  [REQUEST_ID_HEADER]: requestId,
  "api-version": apiVersion,
  "x-content-type-options": "nosniff",
});

/** Caches must not keep errors: the next answer may be another. */
const NOT_STORED = { "cache-control": "no-store" };

/**
 * The callers' own faults are of little interest, 501 among them. Nor is each request that an overloaded server refuses: the
 * line would cost more than the refusal.
 */
const levelOf = ({ status, code }: ErrorRecord) =>
  status < 500 || status === 501 || code === "OVERLOADED" ? "debug" : status <= 502 ? "error" : "warn";

export function errorAnswers(options: ServerOptions & Partial<TranscoderOptions>) {
  const { apiVersion, errors, random } = serverDefaults(options);
  const { failureOf, form } = errorForms(errors, () => filesOf(options));
  const metadataFor = responseMetadata(options);
  /** The metadata of a service's error that callers get. Connect does not tell its headers from its trailers. */
  const metadataOf = (error: unknown) =>
    metadataFor && error instanceof UpstreamFailure && error.cause instanceof ConnectError
      ? metadataFor(error.cause.metadata)
      : undefined;
  /** Logs the whole error, and returns what the caller may know of it. */
  const tell = (error: unknown, request: FastifyRequest, reply: FastifyReply): Failure => {
    const failure = failureOf(error, request.id);
    const { record } = failure;
    request.log[isGone(reply.raw) ? "debug" : levelOf(record)]({ err: error }, record.code);
    return failure;
  };
  return {
    /** The last message of a stream that fails after it has begun, as JSON text. */
    last: (error: unknown, request: FastifyRequest, reply: FastifyReply): string =>
      jsonOf(form(tell(error, request, reply), false)),
    /** Answers a request with an error. This is Fastify's error handler. */
    send(error: unknown, request: FastifyRequest, reply: FastifyReply) {
      const failure = tell(error, request, reply);
      const { status, headers, type, body } = form(failure, wantsProblem(request));
      varyByAccept(reply);
      // The operation is known, but none of its own code has run if the size or the `Host` was wrong.
      const ending = failure.record.code !== "ROUTE_NOT_FOUND" && request.endingHeaders?.(request.originalUrl);
      reply
        .code(status)
        .headers({ ...(ending || undefined), ...NOT_STORED, ...headers, ...metadataOf(error) })
        .type(type);
      // Fastify sets it on a 413. HTTP/2 has no such header.
      if (request.raw.httpVersionMajor === 2) reply.removeHeader("connection");
      return reply.send(body);
    },
    /** Answers what is not a request of HTTP. */
    refuse(error: HttpError, socket: Duplex) {
      const requestId = newRequestId(random);
      const { status, headers, type, body } = form(failureOf(error, requestId), false);
      // Like all other errors: for a request that can be read, Accept counts.
      const common = { ...commonHeaders(requestId, apiVersion), "content-type": type, vary: "Accept" };
      writeResponse(socket, { status, headers: { ...common, ...NOT_STORED, ...headers }, body });
    },
  };
}

/** A body that is JSON in one line; another body as a JSON string. */
const jsonOf = ({ type, body }: ErrorAnswer): string =>
  /[/+]json\b/.test(type) ? body.replaceAll(/[\r\n]+/g, " ") : JSON.stringify(body);

export interface EarlyRefusals extends TranscoderOptions {
  /** The error that they are refused with. */
  readonly error: HttpError;
  /** Whether to refuse a request. Asked for each that is for an operation, before its body is read. */
  readonly refuses: (request: IncomingMessage, operation: Operation) => boolean;
  /** More headers for the answer. By default none. */
  readonly moreHeaders?: ((request: IncomingMessage) => Record<string, string>) | undefined;
}

/**
 * Looks at the requests of a server before Fastify does. The answer is the one that `authorize` would bring about by
 * throwing the error; but `Host` and sizes are not judged, no hook is called, and nothing is logged. A HEAD, a
 * target with scheme and host, and what asks for no operation goes on to `next`. For the `serverFactory` of Fastify.
 */
export function refuseEarly(options: EarlyRefusals, next: RequestListener): RequestListener {
  const { error, refuses, moreHeaders, services } = options;
  const { apiVersion, errors, random } = serverDefaults(options);
  const { basePath, deprecation, codec } = transcoderDefaults(options);
  const operations = selectServed(services, options).served.flatMap((service) => service.operations);
  const router = createRouter(operations, basePath);
  const endings = new Map(operations.map((one) => [one, deprecationHeaders(one, deprecation, basePath, codec)]));
  const { failureOf, form } = errorForms(errors, () => filesOf(options));
  const answers = [false, true].map((asProblem) => {
    const { status, headers, type, body } = form(failureOf(error, ""), asProblem);
    const about = { "content-type": `${type}; charset=utf-8`, "content-length": `${Buffer.byteLength(body)}` };
    return { status, body, headers: { ...NOT_STORED, ...headers, ...about } };
  });

  function refuse(request: IncomingMessage, response: ServerResponse, operation: Operation): void {
    const { [REQUEST_ID_HEADER]: given, traceparent } = request.headers;
    const id = requestIdOf(given, traceparent, random);
    const { vary, ...more } = moreHeaders?.(request) ?? {};
    const answer = answers[wantsProblem(request) ? 1 : 0] as (typeof answers)[number];
    response.writeHead(answer.status, {
      ...commonHeaders(id, apiVersion),
      ...endings.get(operation)?.(request.url ?? ""),
      ...more,
      vary: vary === undefined ? "Accept" : `${vary}, Accept`,
      ...answer.headers,
    });
    response.end(answer.body);
  }

  return (request, response) => {
    const operation = request.method === "HEAD" ? undefined : operationOf(request, router);
    if (operation && refuses(request, operation)) refuse(request, response, operation);
    else next(request, response);
  };
}
