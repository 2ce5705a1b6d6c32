import type { IncomingMessage } from "node:http";

/** Adds the host that HTTP/1.0 may leave out (RFC 9112 section 3.3), for code that builds a URL from it, as Connect does. */
export function ensureHost({ httpVersionMajor, headers }: Pick<IncomingMessage, "httpVersionMajor" | "headers">): void {
  if (httpVersionMajor === 1) headers.host ??= "localhost";
}
