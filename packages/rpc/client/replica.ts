/** One process of a service, as its callers see it: an HTTP/2 connection for unary calls and one for streams. */
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransportOptions } from "@connectrpc/connect-node";
import type { Clock } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import type { Watched } from "@petstore/runtime/watched-files";
import type { Tracing } from "@petstore/trace/tracing";
import { SECRET_HEADER } from "../call.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { MAX_MESSAGE_BYTES } from "../http/limits.ts";
import { type CallLimit, type Links, withCallLimit, withLink } from "../link/client.ts";
import { LINK_CONTENT_TYPE, LINK_PATH, STREAM_WINDOW_BYTES } from "../link/frames.ts";
import type { Certificates } from "../tls/certificates.ts";
import { withSpans } from "../traced.ts";
import { openSessions } from "./sessions.ts";

/** Time limit of a health check. */
const CHECK_MS = 1000;

export type Replica = ReturnType<typeof openReplica>;

export interface ReplicaOptions {
  /** One of the addresses of the host in the URL. By default Node looks the host up for each connection. */
  readonly address?: string | undefined;
  /** Proves, if no certificate does, that this process may call internal services and name the caller that it calls for. */
  readonly secret?: string | undefined;
  /** The certificate to present at an https address, and the CAs that verify the replica. By default none, and Node's CAs. */
  readonly certificates?: Watched<Certificates> | undefined;
  /** Several replicas may share it. */
  readonly limit: CallLimit;
  readonly clock: Clock;
  readonly log?: Pick<Logger, "info" | "warn"> | undefined;
  /** Whether unary calls go over a link, if the replica supports it. True by default. */
  readonly link?: boolean | undefined;
  /** Several replicas may share it. */
  readonly links?: Links | undefined;
  readonly tracing?: Tracing | undefined;
}

/** Bytes of a stream that may wait for a slow reader: HTTP/2's initial window (RFC 9113, 6.9.2). */
const WAITING_BYTES = 65_535;
/** Milliseconds between two lines of the log about a certificate that can't be verified. */
const LOG_EVERY_MS = 10_000;

/** Connects when it is first called. */
export function openReplica(url: string, options: ReplicaOptions) {
  const { address, secret, certificates, limit, clock, link = true, links, log, tracing } = options;
  let loggedAt = Number.NEGATIVE_INFINITY;
  // Callers get only UNAVAILABLE, and the cause does not go away by itself.
  const logUnverified = (problem: string) => {
    if (clock() - loggedAt < LOG_EVERY_MS) return;
    loggedAt = clock();
    const words = "a service's certificate can't be verified: INTERNAL_TLS_CA names its authority";
    log?.warn({ url, address, problem }, words);
  };
  const to = { url, address, certificates };
  const sessions = openSessions(to, STREAM_WINDOW_BYTES, logUnverified);
  // A connection of their own, so that streams take no room from calls. Its windows are small: many streams have slow readers.
  const forStreams = openSessions(to, WAITING_BYTES, logUnverified);
  const proof: Record<string, string> = secret === undefined ? {} : { [SECRET_HEADER]: secret };
  const over = (sessionManager: GrpcTransportOptions["sessionManager"]) =>
    createGrpcTransport({
      baseUrl: url,
      sessionManager,
      readMaxBytes: MAX_MESSAGE_BYTES,
      writeMaxBytes: MAX_MESSAGE_BYTES,
      // Compressing a response costs more than sending it to the next process as it is.
      acceptCompression: [],
      interceptors: [
        (next) => (request) => {
          for (const [name, value] of Object.entries(proof)) request.header.set(name, value);
          return next(request);
        },
      ],
    });
  const transport: Transport = { unary: over(sessions).unary, stream: over(forStreams).stream };
  const linkHeaders = { "content-type": LINK_CONTENT_TYPE, te: "trailers", ...proof };
  const connect = (isAgain: boolean) => {
    // Peers are authenticated once per connection. A new one may succeed, if certificates have changed on either side.
    if (isAgain && certificates) for (const { leave } of [sessions, forStreams]) leave();
    return sessions.request("POST", LINK_PATH, linkHeaders, {});
  };
  const health = createClient(Health, transport);
  const limited = link ? withLink(transport, { connect, clock, limit, links }) : withCallLimit(transport, limit);
  return {
    url,
    address,
    transport: withSpans(limited, tracing, url),
    /** Whether it reports SERVING; also false if it does not answer in time. Never rejects. */
    isServing: (timeoutMs = CHECK_MS): Promise<boolean> =>
      health.check({}, { timeoutMs }).then(
        ({ status }) => status === Status.SERVING,
        () => false,
      ),
    /** Whether it leaves a health check unanswered for a second; false if the connection is broken. Never rejects. */
    isSilent: (): Promise<boolean> =>
      health.check({}, { timeoutMs: CHECK_MS }).then(
        () => false,
        (error) => ConnectError.from(error).code === Code.DeadlineExceeded,
      ),
    /** How many streams are open, other than the calls of unary RPCs. */
    streams: forStreams.open,
    /** Ends the connection for unary calls, which its link would keep for ever. Streams go on. */
    endCalls: sessions.close,
    close(): void {
      sessions.close();
      forStreams.close();
    },
  };
}
