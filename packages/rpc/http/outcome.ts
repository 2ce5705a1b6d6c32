/** What became of a request, for those who count requests or follow them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isGone } from "connect-transcoder/http";

/** The status of a request that got no answer because its caller left, as nginx has it. */
export const CALLER_LEFT = 499;

/** Over HTTP/2 a request may name any. */
const METHODS: ReadonlySet<string | undefined> = new Set([
  ...["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"],
]);

/** A name for each method of few. */
export const methodName = (method: string | undefined): string => (METHODS.has(method) ? (method as string) : "_OTHER");

/** Calls `end` once, when the answer is over: with its status, or `CALLER_LEFT` if it had not begun. */
export function whenOver(request: IncomingMessage, response: ServerResponse, end: (status: number) => void): void {
  const over = () => end(response.headersSent ? response.statusCode : CALLER_LEFT);
  const { stream } = request as { readonly stream?: ServerResponse };
  // Node does not report the close of a HEAD response over HTTP/2 that its handler has not ended.
  if (isGone(response)) over();
  else (stream ?? response).once("close", over);
}
