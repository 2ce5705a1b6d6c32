/** The links to a process: which requests open one, who may, and their end when the process stops. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { Logger } from "@petstore/runtime/log";
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";
import { createTurns, type TurnsAtOnce } from "../http/turns.ts";
import { isPeerRequest } from "../server/authorization.ts";
import type { Dispatcher } from "../server/dispatcher.ts";
import { type LinkLimits, type ServerStream, serveStream } from "./server-stream.ts";
import { LINK_PATH } from "./version.ts";

/** As many calls as a dispatcher works on, and as many bytes as a caller may wait with. */
const defaultLimits: LinkLimits = { calls: 10_000, bytes: 64 * 1024 * 1024 };

export interface LinkServerOptions {
  readonly dispatcher: Dispatcher;
  readonly log: Logger;
  readonly limits?: LinkLimits;
  /** Calls of all links are begun in turns, so that none keeps the process busy for long. */
  readonly turns?: TurnsAtOnce;
}

export interface LinkServer {
  /**
   * Serves a request that opens a link and may; resolves when nothing is done for it any more. Undefined for any other
   * request, among them those for a link that the router refuses.
   */
  serve(request: IncomingMessage, response: ServerResponse): Promise<void> | undefined;
  /** Refuses what asks for a link and may not, or asks in a protocol that can't carry one. */
  routes(router: ConnectRouter): void;
  /** The process stops: no new links, and those that are open end when their last call is answered. */
  drain(): void;
}

export function createLinkServer({ dispatcher, log, limits = defaultLimits, turns }: LinkServerOptions): LinkServer {
  const { rpcError, system } = dispatcher.errors;
  const shared = turns ?? createTurns();
  const open = new Set<ServerStream>();
  let isDraining = false;

  return {
    serve(request, response) {
      if (request.url !== LINK_PATH || !isGrpc(request) || !isPeerRequest(dispatcher, request)) return undefined;
      // Of HTTP/2: they stand in for those of HTTP/1.1.
      const exchange = [request, response] as unknown as [Http2ServerRequest, Http2ServerResponse];
      const link = serveStream(...exchange, { dispatcher, turns: shared, log, limits });
      open.add(link);
      if (isDraining) link.drain();
      return link.ended.finally(() => open.delete(link));
    },
    routes(router) {
      const refuse = async function* (_requests: unknown, { requestHeader }: HandlerContext) {
        yield* [];
        throw dispatcher.isTrusted(requestHeader)
          ? new ConnectError("A link is gRPC over HTTP/2.", Code.Unimplemented)
          : rpcError("PERMISSION_DENIED", `Links are for ${system}'s own processes.`);
      };
      router.service(LinkService, { link: refuse });
    },
    drain() {
      isDraining = true;
      for (const link of open) link.drain();
    },
  };
}

const isGrpc = ({ httpVersionMajor, method, headers }: IncomingMessage): boolean =>
  httpVersionMajor === 2 && method === "POST" && /^application\/grpc(\+proto)?$/.test(headers["content-type"] ?? "");
