/** Judges a request by its head, and drops a body that has no meaning. */
import type { IncomingMessage } from "node:http";
import { finished } from "node:stream/promises";
import type { FastifyRequest } from "fastify";
import { answersBytes, streamsAnswers } from "../contract/kinds.ts";
import type { Operation } from "../contract/operation.ts";
import { deprecationHeaders, sunsetCheck } from "../policy/deprecation.ts";
import { bodyTypesOf, checkAccept, checkContentType, varyByAccept } from "../policy/media.ts";
import type { Endpoint } from "./dispatch.ts";
import { announceBody } from "./node-http.ts";
import type { OperationOptions } from "./routes.ts";

/**
 * Compiles what is judged before a body is read: authorization, the sunset, Accept, then the Content-Type. Behind it come the size
 * of the body, headers, path, query and the body.
 */
export function admission(operation: Operation, options: OperationOptions): Pick<Endpoint, "endingHeaders" | "admit"> {
  const { basePath, clock, inTime } = options;
  const isStreamed = streamsAnswers(operation);
  const isBytes = answersBytes(operation);
  const bodyTypes = bodyTypesOf(operation, options.requireContentType);
  const endingHeaders = deprecationHeaders(operation, options.deprecation, basePath, options.codec);
  const checkSunset = sunsetCheck(operation, options.deprecation, clock);
  return {
    endingHeaders,
    // A promise costs as much as all these checks.
    admit(request, reply, done) {
      if (endingHeaders) reply.headers(endingHeaders(request.originalUrl));
      varyByAccept(reply);
      const admission = options.authorize(request, operation);
      if (admission) return admission.then(() => check(request));
      const arrival = check(request);
      if (arrival) return arrival;
      done();
    },
  };

  function check(request: FastifyRequest): Promise<void> | undefined {
    checkSunset();
    const isDropping = !operation.body && dropContent(request.raw);
    // Of bytes it is known only with the answer what they are.
    if (!isStreamed && !isBytes) checkAccept(request);
    if (operation.body) {
      announceBody(request.raw);
      checkContentType(request.headers, bodyTypes);
    } else if (operation.verb !== "GET") {
      request.headers = NO_CONTENT;
      // If it breaks off, the caller is told that the request can't be read: then it must not be carried out.
      if (isDropping) return inTime(request, finished(request.raw, { writable: false }));
    }
  }
}

/**
 * Discards a body that has no meaning (RFC 9110, 9.3), and returns whether there is one. Unread, the request would run into
 * the limit for its arrival.
 */
function dropContent(request: IncomingMessage & { readonly stream?: { readonly endAfterHeaders: boolean } }): boolean {
  const { stream, headers } = request;
  const isEmpty = stream ? stream.endAfterHeaders : !("content-length" in headers || "transfer-encoding" in headers);
  if (!isEmpty) request.resume();
  return !isEmpty;
}

/** Overrides the headers of a body that has no meaning, as in a DELETE (RFC 9110, 9.3.5): Fastify would check them. */
const NO_CONTENT = { "content-type": undefined, "content-length": undefined, "transfer-encoding": undefined };
