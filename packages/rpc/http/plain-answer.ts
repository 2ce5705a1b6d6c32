/** Answers to requests that no handler sees. */
import type { IncomingMessage, ServerResponse } from "node:http";

export interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A line of text, for a request that is in no protocol with errors of its own. */
export const inWords = (status: number, words: string, more: Readonly<Record<string, string>> = {}): PlainAnswer => ({
  status,
  headers: { "content-type": "text/plain", ...more },
  body: Buffer.from(`${words}\n`),
});

/** Drops the rest of the request, so that its client goes on to read the response. */
export function answerPlainly(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: PlainAnswer,
): void {
  request.resume();
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  // Trailers-Only is one frame: gRPC's own clients see no status if an empty frame follows to end the stream.
  if (body.length === 0) return void response.end();
  // Over HTTP/2 Node does not add it, and curl 7.88 fails where it has sent a part of its request and must wait for the end.
  response.setHeader("content-length", body.length);
  response.end(body);
}
