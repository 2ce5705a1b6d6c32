/** Routes each request of a server to a link, to a stream in binary gRPC, or to Connect, with what is known of its caller. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createContextValues } from "@connectrpc/connect";
import type { Compression, UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Logger } from "@petstore/runtime/log";
import { splitTarget } from "connect-transcoder/http";
import { keepRepeated } from "../auth/credentials.ts";
import { answerPlainly, inWords, type PlainAnswer } from "../http/answers.ts";
import { isProven } from "../http/connections.ts";
import type { CallerAddress } from "../http/hosts.ts";
import { countAsStream, type Handler } from "../http/requests.ts";
import type { LinkServer } from "../link/server.ts";
import { judgeTypes } from "./call-types.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { dropEndlessTimeout } from "./endless-timeouts.ts";
import { NO_SUCH_RPC, unknownRpcAnswer } from "./error-answer.ts";
import { type Gate, isBinaryGrpc, type ServeStream, serveGrpcStream } from "./grpc-stream.ts";
import { limitCall } from "./message-limit.ts";
import { type Caller, callerKey, isServerStreaming } from "./routes.ts";
import { endedBy } from "./until.ts";

export interface ListenerOptions {
  /** For streams that are served without Connect's handler. */
  readonly gate: Gate;
  readonly compressions: readonly Compression[];
  readonly links: LinkServer;
  readonly log: Logger;
  readonly dispatcher: Dispatcher;
  readonly maxBytes: number;
  readonly addressOf: CallerAddress;
}

export function createListener(
  handlers: readonly UniversalHandler[],
  { gate, compressions, links, log, dispatcher, maxBytes, addressOf }: ListenerOptions,
): Handler {
  const { errors, asksCallers, heedsProxies } = dispatcher;
  const byPath = new Map(
    handlers.map((handler) => [handler.requestPath, { handler, judge: judgeTypes(handler.method, { errors }) }]),
  );
  /** Errors of a handler are sent as responses. This handles requests that are not valid HTTP, and clients that have gone. */
  const giveUp = ({ url = "" }: IncomingMessage, response: ServerResponse, err: unknown): void => {
    log.debug({ err, path: url.split("?", 1)[0] }, "no answer could be sent");
    response.destroy();
  };
  const streams = new Map<string, ServeStream>();
  for (const { method, requestPath } of handlers)
    if (isServerStreaming(method))
      streams.set(requestPath, serveGrpcStream(method, { dispatcher, gate, compressions, maxBytes, giveUp }));
  const serveByConnect = async (
    handler: UniversalHandler,
    caller: Caller,
    request: IncomingMessage,
    response: ServerResponse,
  ) => {
    try {
      const values = createContextValues().set(callerKey, caller);
      const call = universalRequestFromNodeRequest(request, response, undefined, values);
      dropEndlessTimeout(call.header);
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      handler(limitCall(call, request, handler.method, maxBytes, errors))
        .then(({ body, ...head }) => {
          if (!body) resolve();
          const whole = body && endedBy(call.signal, noting(body, resolve));
          return universalResponseToNodeResponse({ ...head, ...(whole && { body: whole }) }, response);
        })
        .catch((error: unknown) => {
          giveUp(request, response, error);
          resolve();
        });
      // Some protocols run the RPC while its response is read, so wait for that end. Its client may take longer to read it.
      await ended;
    } catch (error) {
      giveUp(request, response, error);
    }
  };
  const serve: Handler = (request, response) => {
    const link = links.serve(request, response);
    if (link) return link;
    // Without this, caches may store the response to a GET (RFC 9111, 4.2.2) and serve it to other callers.
    if (request.method === "GET") response.setHeader("cache-control", "no-store");
    const { path, query } = splitTarget(request.url ?? "");
    const found = byPath.get(path);
    if (!found) {
      const answer = unknownRpcAnswer(request, query, errors) ?? inWords(404, NO_SUCH_RPC);
      return answerPlainly(request, response, answer);
    }
    const { handler, judge } = found;
    const { allowedMethods } = handler;
    if (!allowedMethods.includes(request.method ?? ""))
      return answerPlainly(request, response, notAllowed(allowedMethods));
    const refusal = judge(request, query);
    if (refusal)
      return answerPlainly(request, response, refusal.answer ?? inWords(415, refusal.message, refusal.headers));
    if (asksCallers) keepRepeated(request);
    const caller = whoAsks(request, response, addressOf, heedsProxies);
    const serveStream = isBinaryGrpc(request) ? streams.get(path) : undefined;
    if (serveStream) return serveStream(request, response, caller);
    return serveByConnect(handler, caller, request, response);
  };
  return (request, response) => {
    try {
      return serve(request, response);
    } catch (error) {
      giveUp(request, response, error);
    }
  };
}

/** What is known of the caller before its headers are read. */
const whoAsks = (
  request: IncomingMessage,
  response: ServerResponse,
  addressOf: CallerAddress,
  heedsProxies: boolean,
): Caller =>
  isProven(request)
    ? { isPeer: true }
    : {
        isProxy: heedsProxies && addressOf.isProxy?.(request) === true,
        origin: {
          network: addressOf(request),
          response,
          countAsStream: () => countAsStream(request, response),
        },
      };

const notAllowed = (allowed: readonly string[]): PlainAnswer =>
  inWords(405, `This RPC is called by ${allowed.join(" or ")}.`, { allow: allowed.join(", ") });

async function* noting<T>(items: AsyncIterable<T>, ended: () => void): AsyncGenerator<T, void> {
  try {
    yield* items;
  } finally {
    ended();
  }
}
