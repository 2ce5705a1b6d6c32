import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

/** Whether there is nobody any more to answer: a listener to "close" would not be called. HTTP/2's API does not show it itself. */
export function isGone(response: Pick<ServerResponse, "closed" | "destroyed">): boolean {
  const { stream } = response as Partial<Pick<Http2ServerResponse, "stream">>;
  return response.closed || response.destroyed || stream?.destroyed === true;
}
