/** What a client is told whose request can't be read. There is only a socket, or a stream of HTTP/2. */
import type { Socket } from "node:net";
import { NO_PROXY, writeResponse } from "connect-transcoder/http";
import { connectionOn, owesAnswers } from "./connections.ts";
import { isAnswered } from "./lingering.ts";

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

/** Somebody speaks plain HTTP to a port with TLS. Named as Node names it. */
export const plainHttp = () =>
  Object.assign(new Error("plain HTTP on a port with TLS"), { code: "ERR_SSL_HTTP_REQUEST" });

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
