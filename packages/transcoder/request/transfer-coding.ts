/** How the body of a request is transferred (RFC 9112, 6.1 and 7). */
import type { IncomingMessage } from "node:http";

/**
 * Why a body can't be read as it is transferred; undefined if it can. Node reads chunks, and leaves what they carry in other
 * codings as it is.
 */
export function transferProblem({ headers }: Pick<IncomingMessage, "headers">): string | undefined {
  const codings = headers["transfer-encoding"];
  if (codings === undefined || /^chunked$/i.test(codings)) return undefined;
  return "Transfer-Encoding: the only coding is chunked. Send the body as it is, in chunks or with a Content-Length.";
}
