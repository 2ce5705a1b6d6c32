/** A port for whoever runs a process: HTTP/1.1 without TLS, few connections, requests that arrive soon, answers that nobody keeps. */
import { createServer, type IncomingMessage } from "node:http";
import { origin } from "./address.ts";
import { type ListenAdvice, type ListenOptions, listen } from "./listen.ts";

export interface AdminAnswer {
  readonly status: number;
  /** Sent as JSON. */
  readonly body?: object;
  /** Sent as it is, with its type. */
  readonly text?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const MAX_CONNECTIONS = 100;
/** How long a request may take to arrive, in milliseconds. */
const REQUEST_MS = 10_000;

/** `answer` must not reject. Throws `ListenError`. */
export async function openAdminPort(
  place: ListenOptions,
  answer: (request: IncomingMessage) => AdminAnswer | Promise<AdminAnswer>,
  advice: ListenAdvice,
) {
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, async (request, response) => {
    const given = await answer(request);
    const { status, body, text = body && JSON.stringify(body), type = "application/json", headers } = given;
    const all = { "cache-control": "no-store", "x-content-type-options": "nosniff", ...headers };
    if (!request.complete) response.setHeader("connection", "close");
    if (text === undefined) return response.writeHead(status, all).end();
    response.writeHead(status, { ...all, "content-type": type }).end(text);
  });
  server.maxConnections = MAX_CONNECTIONS;
  const port = await listen(server, place, advice);
  return {
    port,
    url: origin(place.host, port),
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
