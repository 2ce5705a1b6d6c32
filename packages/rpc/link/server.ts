/** The links to a process: which requests open one, which callers may, what is read and sent on each, and how they end. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { Logger } from "@petstore/runtime/log";
import {
  type LinkRequest,
  LinkRequestSchema,
  LinkResponseSchema,
  LinkService,
} from "../gen/link/internal/v1/link_service_pb.ts";
import { keepOpen } from "../http/sessions.ts";
import type { Dispatcher } from "../server/dispatcher.ts";
import {
  type AnswerInit,
  bytesOfAnswer,
  CONNECTION_WINDOW_BYTES,
  LINK_CONTENT_TYPE,
  LINK_PATH,
  LINK_VERSION,
  LinkViolation,
  onceATurn,
  parts,
  readFrames,
  STREAM_WINDOW_BYTES,
  toFrame,
} from "./frames.ts";
import { createServerCalls } from "./server-calls.ts";

/** While more than this is under way on a link, nothing is read from it, until half is left. */
export interface LinkLimits {
  readonly calls: number;
  /** Bytes of requests that run, and of answers that wait to be taken. */
  readonly bytes: number;
}

/** As many calls as a dispatcher runs, and as many bytes as a client may have waiting (`limitCalls`). */
const defaultLimits: LinkLimits = { calls: 10_000, bytes: 64 * 1024 * 1024 };

interface LinkServerOptions {
  readonly dispatcher: Dispatcher;
  readonly log: Logger;
  readonly limits?: LinkLimits;
}

export type LinkServer = ReturnType<typeof createLinkServer>;

export function createLinkServer({ dispatcher, log, limits = defaultLimits }: LinkServerOptions) {
  const { rpcError, system } = dispatcher.errors;
  const open = new Set<ReturnType<typeof serveStream>>();
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

/** Serves a link that one of the system's own processes has opened. */
function serveStream(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  { dispatcher, log, limits }: Required<LinkServerOptions>,
) {
  const { stream } = request;
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const calls = createServerCalls(dispatcher, onEnd);
  const reader = readFrames(LinkRequestSchema, take);
  let state: "new" | "open" | "over" = "new";
  let hasAllCalls = false;
  let answers: AnswerInit[] = [];
  let answersBytes = 0;
  let isBlocked = false;
  let isClosed = false;

  function take(message: LinkRequest): void {
    if (state === "over") return;
    if (state === "new") open(message);
    else if (message.hello) throw new LinkViolation("it says hello twice");
    if (state === "open") calls.take(message);
  }

  function open({ hello }: LinkRequest) {
    if (!hello) throw new LinkViolation("it does not say hello");
    if (hello.version !== LINK_VERSION)
      return finish(Code.Unimplemented, `Links here speak version ${LINK_VERSION}, not ${hello.version}.`);
    state = "open";
    keepOpen(stream);
    stream.session?.settings({ initialWindowSize: STREAM_WINDOW_BYTES });
    stream.session?.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    response.writeHead(200, { "content-type": LINK_CONTENT_TYPE });
    response.write(toFrame(LinkResponseSchema, { hello: { version: LINK_VERSION } }));
  }

  function onEnd(answer: AnswerInit | undefined): void {
    if (answer) {
      answers.push(answer);
      answersBytes += bytesOfAnswer(answer);
    }
    flushSoon();
  }

  /** How many answers were sent together last. */
  let together = 0;
  const flushSoon = onceATurn(flush, () => together === 1 && calls.underWay().calls === 0);
  function flush(): void {
    resolveIfEnded();
    if (state !== "open") return;
    if (!isBlocked && answers.length > 0) {
      const ready = answers;
      together = ready.length;
      answers = [];
      answersBytes = 0;
      for (const part of parts(ready, bytesOfAnswer))
        isBlocked = !response.write(toFrame(LinkResponseSchema, { answers: part }));
    }
    readOrWait();
    if (hasAllCalls && answers.length === 0 && calls.underWay().calls === 0) finish();
  }

  function readOrWait(): void {
    const underWay = calls.underWay();
    // Written bytes count only while blocked: otherwise they are in flight, and nothing reports when they were taken.
    const bytes = underWay.bytes + answersBytes + (isBlocked ? response.writableLength : 0);
    if (underWay.calls > limits.calls || bytes > limits.bytes) stream.pause();
    else if (stream.isPaused() && underWay.calls <= limits.calls / 2 && bytes <= limits.bytes / 2) stream.resume();
  }

  /** Ends the stream with a gRPC status. */
  function finish(status: Code | 0 = 0, message = ""): void {
    if (state === "over") return;
    const isNew = state === "new";
    state = "over";
    const trailers = { "grpc-status": `${status}`, ...(message && { "grpc-message": encodeURIComponent(message) }) };
    // If nothing was sent before, the status is among the headers ("Trailers-Only").
    if (isNew) response.writeHead(200, { "content-type": LINK_CONTENT_TYPE, ...trailers });
    else response.addTrailers(trailers);
    // Tells the caller to send nothing more (RFC 9113 section 8.1). Closing without delay would drop the trailers.
    stream.once("wantTrailers", () => setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR)));
    response.end();
  }

  function read(chunk: Buffer): void {
    if (state === "over") return;
    try {
      reader.read(chunk);
      readOrWait();
    } catch (error) {
      refuse(`${error}`);
    }
  }

  function refuse(why: string): void {
    log.warn({ why, address: stream.session?.socket?.remoteAddress }, "a link was ended: its caller breaks the rules");
    calls.abandon();
    finish(Code.Internal, `The link is ended: ${why}.`);
  }

  function resolveIfEnded(): void {
    if (isClosed && calls.underWay().calls === 0) resolve();
  }

  stream.on("data", read);
  stream.once("end", () => {
    // A lost connection emits "end" on its streams, too.
    if (state === "over" || stream.aborted) return;
    if (state === "new" || reader.isWithinFrame()) return refuse("it ends in the middle");
    hasAllCalls = true;
    flush();
  });
  response.on("drain", () => {
    isBlocked = false;
    flush();
  });
  stream.once("close", () => {
    isClosed = true;
    state = "over";
    calls.abandon();
    resolveIfEnded();
  });

  return {
    /** Asks the caller to end the link. Calls that it sends until then are answered. */
    drain(): void {
      if (state === "open") response.write(toFrame(LinkResponseSchema, { drain: {} }));
      else if (state === "new") stream.close(constants.NGHTTP2_REFUSED_STREAM);
    },
    /** Resolves when the stream is closed and no call is under way any more. */
    ended,
  };
}
