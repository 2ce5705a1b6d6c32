import type { IncomingMessage } from "node:http";

/** Names a host where HTTP/1.0 left it out (RFC 9112 section 3.3), for what makes a URL of it, as Connect does. */
export function ensureHost({ httpVersionMajor, headers }: Pick<IncomingMessage, "httpVersionMajor" | "headers">): void {
  if (httpVersionMajor === 1) headers.host ??= "localhost";
}
