/** "100 Continue", for which clients wait that don't want to send a body in vain (RFC 9110, 10.1.1). */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";

/** Sends it when the body is first wanted. A request that is refused before gets nothing but the refusal. */
export function continueWhenRead(
  request: IncomingMessage & { readonly stream?: ServerHttp2Stream },
  response: ServerResponse,
): void {
  const wanted = (event: string | symbol) => {
    if (event !== "data" && event !== "readable") return;
    request.off("newListener", wanted);
    // For a stream that was reset together with its request, Node's answer throws, and nothing would catch that.
    if (!response.headersSent && !request.stream?.destroyed && !request.stream?.closed) response.writeContinue();
  };
  request.on("newListener", wanted);
}
