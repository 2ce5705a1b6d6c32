/** Judges a request by its head, and reads its body within the limits, or drops one that has no meaning. */
import type { IncomingMessage } from "node:http";
import { finished } from "node:stream/promises";
import type { FastifyRequest } from "fastify";
import { answersBytes, type Operation, streamsAnswers } from "../contract/operation.ts";
import { HttpError } from "../errors/http-error.ts";
import { deprecationHeaders, sunsetCheck } from "../policy/deprecation.ts";
import { bodyTypesOf, checkAccept, checkContentType, varyByAccept } from "../policy/media.ts";
import { readBody } from "../request/http.ts";
import { after } from "./after.ts";
import type { HandlerOptions, Limits } from "./options.ts";
import type { Endpoint } from "./routes.ts";

/**
 * Compiles what is judged before a body is read: authorization, the sunset, Accept, then the Content-Type. Behind it come the size
 * of the body, headers, path, query and the body.
 */
export function admission(operation: Operation, options: HandlerOptions): Pick<Endpoint, "endingHeaders" | "admit"> {
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
    checkSunset?.();
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

/** In HTTP/2 a body needs no header that announces it, and Fastify would not read it. */
function announceBody({ httpVersionMajor, headers }: IncomingMessage): void {
  if (httpVersionMajor === 2 && headers["content-length"] === undefined) headers["transfer-encoding"] = "chunked";
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

export type InTime = <T>(request: FastifyRequest, arrival: Promise<T>) => Promise<T>;

/** Ends the wait for what arrives too slowly, if `isTimed`: else Node does. */
export function arrivalTimer({ requestMs }: Limits, clock: () => number, isTimed: boolean): InTime {
  if (!isTimed) return (_, arrival) => arrival;
  return ({ arrivedAt }, arrival) =>
    new Promise((resolve, reject) => {
      const cancel = after(arrivedAt + requestMs - clock(), () => reject(TOO_SLOW));
      arrival.then(resolve, reject).finally(cancel);
    });
}

export type ReadBody = (request: FastifyRequest, payload: IncomingMessage) => Promise<Buffer>;

/** Reads bodies that are one message. */
export function bodyReader({ bodyBytes }: Limits, inTime: InTime): ReadBody {
  return async (request, payload) => {
    const { headers } = request;
    const refuse = (_piece: unknown, length: number) => {
      if (length > bodyBytes) throw TOO_LARGE;
    };
    refuse(undefined, Number(headers["content-length"]));
    return inTime(request, readBody(payload, refuse));
  };
}

const TOO_LARGE = new HttpError("PAYLOAD_TOO_LARGE", "The body is too large.");
const TOO_SLOW = new HttpError("REQUEST_TIMEOUT", "The request did not arrive in time. Nothing was done.", {
  connection: "close",
});

/** For a request whose time was over before all of it was there. */
export const arrivedTooLate = (): HttpError =>
  new HttpError("REQUEST_TIMEOUT", "The time for the request was over when it had arrived. Nothing was done.");
