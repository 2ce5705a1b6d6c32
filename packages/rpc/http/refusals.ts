/**
 * What a port refuses by itself: what can't be read, where there is only a socket, or a stream of HTTP/2; and at a service a
 * request without a valid host, with too many header fields, with a transfer coding that it does not know, or without memory.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { hostProblem, NO_PROXY, transferProblem, writeResponse } from "connect-transcoder/http";
import { answerPlainly, inWords, isAnswered } from "./answers.ts";
import { connectionOn, owesAnswers } from "./connections.ts";
import type { HostCheck } from "./hosts.ts";
import { isRefused, TOO_MANY_UNDER_WAY } from "./request-budget.ts";
import type { Handler } from "./requests.ts";

export interface Refusals {
  /** All header fields of one request together. */
  readonly headerBytes: number;
  /** Which hosts strangers' requests may name; by default any. */
  readonly checkHost?: HostCheck | undefined;
  readonly knowsPeer: (request: IncomingMessage) => boolean;
}

export const refusing =
  (handler: Handler, { headerBytes, checkHost, knowsPeer }: Refusals): Handler =>
  (request, response) => {
    response.setHeader("x-content-type-options", "nosniff");
    const refuse = (...words: Parameters<typeof inWords>) => answerPlainly(request, response, inWords(...words));
    // gRPC-Web and Connect clients take a 503 for UNAVAILABLE.
    if (isRefused(request)) return refuse(503, TOO_MANY_UNDER_WAY, { "retry-after": "1" });
    if (isTooLong(request, headerBytes)) return refuse(431, `The header fields are longer than ${headerBytes} bytes.`);
    const problem = hostProblem(request);
    if (problem !== undefined) return refuse(400, `Host: ${problem}.`);
    const refusal = checkHost?.(request);
    if (refusal !== undefined && !knowsPeer(request)) return refuse(421, `Host: ${refusal}`);
    const coding = transferProblem(request);
    if (coding !== undefined) return refuse(501, coding, { connection: "close" });
    return handler(request, response);
  };

/** Node announces the limit to HTTP/2 clients, but accepts up to 64 KiB from those that ignore it. */
function isTooLong({ httpVersionMajor, rawHeaders }: IncomingMessage, maxBytes: number): boolean {
  // RFC 9113 section 6.5.2: each field counts 32 bytes more.
  return httpVersionMajor === 2 && rawHeaders.reduce((sum, text) => sum + text.length + 16, 0) > maxBytes;
}

/**
 * Calls `refuse` when the requests that were read before on a connection are answered. The first answer is for the first
 * request (RFC 9112, 9.3.2), so its caller would take an earlier refusal for its own, and believe that nothing was done.
 */
export function behindAnswers(socket: Socket, refuse: () => void): void {
  const connection = connectionOn(socket);
  const refuseOnce = () => {
    if (connection?.newest && isAnswered(connection.newest.req)) connection.end();
    else refuse();
  };
  if (connection && owesAnswers(connection)) {
    socket.pause(); // else what comes meanwhile would renew the time limit of the answers
    connection.whenAnswered ??= refuseOnce;
  } else refuseOnce();
}

const unreadable: Readonly<Record<string, readonly [status: number, why: string]>> = {
  HPE_HEADER_OVERFLOW: [431, "The header fields are too long."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "The chunk extensions are too long."],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request did not arrive in time. Nothing was done."],
  ERR_SSL_HTTP_REQUEST: [400, "This port takes https alone."],
  [NO_PROXY]: [400, "This is not a proxy."],
};

/** The answer where no other listener gives one. */
export function refusePlainly({ code = "" }: NodeJS.ErrnoException, socket: Socket): void {
  const [status, why] = unreadable[code] ?? [400, "The request is not well-formed HTTP/1.1."];
  const headers = { "content-type": "text/plain", "x-content-type-options": "nosniff" };
  writeResponse(socket, { status, headers, body: `${why}\n` });
}
