/** Answers to what went wrong, to a request or on a bare socket. */
import type { Duplex } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { createErrorExit, type ErrorRecord, errorBody, type Failure } from "../errors/error-exit.ts";
import type { HttpError } from "../errors/http-error.ts";
import { varyByAccept, wantsProblem } from "../policy/media.ts";
import { newRequestId } from "../request/request-id.ts";
import { commonHeaders } from "./common-headers.ts";
import { isGone, writeResponse } from "./node-http.ts";
import { type ServerOptions, serverDefaults } from "./options.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Of a route that serves one. */
    operation?: Operation;
    /** The headers of an operation that is on its way out, for a request's target. */
    endingHeaders?: ((target: string) => Record<string, string>) | undefined;
  }
}

/** An error says what was so at one moment. */
export const NOT_STORED = { "cache-control": "no-store" };

/** A line for each request that an overloaded server refuses would cost more than the refusal. What it lacks (501) was asked for. */
const levelOf = ({ status, code }: ErrorRecord) =>
  status < 500 || status === 501 || code === "OVERLOADED" ? "debug" : status <= 502 ? "error" : "warn";

export function errorAnswers(options: ServerOptions) {
  const { apiVersion, errors, random } = serverDefaults(options);
  const failureOf = createErrorExit(errors);
  /** What the caller is told of whatever was thrown, which the log tells in full. */
  const tell = (error: unknown, request: FastifyRequest, reply: FastifyReply): Failure => {
    const failure = failureOf(error, request.id);
    const { record } = failure;
    request.log[isGone(reply.raw) ? "debug" : levelOf(record)]({ err: error }, record.code);
    return failure;
  };
  return {
    tell,
    /** To a request, whatever was thrown; Fastify's error handler. */
    send(error: unknown, request: FastifyRequest, reply: FastifyReply) {
      const { record, headers } = tell(error, request, reply);
      const { type, body } = errorBody(record, wantsProblem(request));
      varyByAccept(reply);
      // Fastify ends the connection behind a body that is too large; HTTP/2 has no such header.
      if (request.raw.httpVersionMajor === 2) reply.removeHeader("connection");
      // Known before the operation is asked for: sizes and `Host` are judged sooner.
      const ending =
        record.code !== "ROUTE_NOT_FOUND" && request.routeOptions.config.endingHeaders?.(request.originalUrl);
      return reply
        .code(record.status)
        .headers({ ...(ending || undefined), ...NOT_STORED, ...headers })
        .type(type)
        .send(body);
    },
    /** To what never became a request. */
    refuse(error: HttpError, socket: Duplex) {
      const requestId = newRequestId(random);
      const { record, headers } = failureOf(error, requestId);
      const { type, body } = errorBody(record, false);
      // Once its fields can be read, the answer depends on them.
      const common = { ...commonHeaders(requestId, apiVersion), "content-type": type, vary: "Accept" };
      writeResponse(socket, { status: record.status, headers: { ...common, ...NOT_STORED, ...headers }, body });
    },
  };
}
