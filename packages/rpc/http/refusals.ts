/**
 * What a service's port refuses by itself: a request without a valid host, with too many header fields, with a transfer coding
 * that it does not know, or without memory.
 */
import type { IncomingMessage } from "node:http";
import { hostProblem, transferProblem } from "connect-transcoder/http";
import type { HostCheck } from "./allowed-hosts.ts";
import type { Handler } from "./one-port.ts";
import { answerPlainly, inWords } from "./plain-answer.ts";
import { isRefused, TOO_MANY_UNDER_WAY } from "./request-budget.ts";

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
