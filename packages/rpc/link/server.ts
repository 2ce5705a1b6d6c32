/** The links to a process: which requests open one, which callers may, and how links end when the process stops. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { Logger } from "@petstore/runtime/log";
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";
import type { Dispatcher } from "../server/dispatcher.ts";
import { LINK_PATH } from "./frames.ts";
import { type LinkLimits, type ServerStream, serveStream } from "./server-stream.ts";

/** As many calls as a dispatcher runs, and as many bytes as a client may have waiting (`limitCalls`). */
const defaultLimits: LinkLimits = { calls: 10_000, bytes: 64 * 1024 * 1024 };

export interface LinkServerOptions {
  readonly dispatcher: Dispatcher;
  readonly log: Logger;
  readonly limits?: LinkLimits;
}

export type LinkServer = ReturnType<typeof createLinkServer>;

export function createLinkServer({ dispatcher, log, limits = defaultLimits }: LinkServerOptions) {
  const { rpcError, system } = dispatcher.errors;
  const open = new Set<ServerStream>();
  let isDraining = false;

  return {
    /**
     * Serves a request that opens a link, if its caller may; resolves when all work for it has ended. Undefined for any other
     * request, including those for a link that `routes` refuses.
     */
    serve(request: IncomingMessage, response: ServerResponse): Promise<void> | undefined {
      if (request.url !== LINK_PATH || !isGrpc(request) || !dispatcher.knowsPeer(request)) return undefined;
      // HTTP/2 objects of the compatibility API, typed as those of HTTP/1.1.
      const exchange = [request, response] as unknown as [Http2ServerRequest, Http2ServerResponse];
      const link = serveStream(...exchange, { dispatcher, log, limits });
      open.add(link);
      if (isDraining) link.drain();
      return link.ended.finally(() => open.delete(link));
    },
    /** Refuses requests for a link whose caller may not open one, or whose protocol can't carry one. */
    routes(router: ConnectRouter): void {
      const refuse = async function* (_requests: unknown, { requestHeader }: HandlerContext) {
        yield* [];
        throw dispatcher.isTrusted(requestHeader)
          ? new ConnectError("A link is gRPC over HTTP/2.", Code.Unimplemented)
          : rpcError("PERMISSION_DENIED", `Links are for ${system}'s own processes.`);
      };
      router.service(LinkService, { link: refuse });
    },
    /** To be called when the process stops: refuses new links, and ends open ones when their last call is answered. */
    drain(): void {
      isDraining = true;
      for (const link of open) link.drain();
    },
  };
}

const isGrpc = ({ httpVersionMajor, method, headers }: IncomingMessage): boolean =>
  httpVersionMajor === 2 && method === "POST" && /^application\/grpc(\+proto)?$/.test(headers["content-type"] ?? "");
