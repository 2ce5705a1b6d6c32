/** One process of a service, as its callers see it: an HTTP/2 connection for unary calls and one for streams. */
import { constants, type Http2Session } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransportOptions, Http2SessionManager } from "@connectrpc/connect-node";
import type { Clock } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import type { Watched } from "@petstore/runtime/watched-files";
import type { Tracing } from "@petstore/trace/tracing";
import { SECRET_HEADER } from "../call.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { MAX_MESSAGE_BYTES } from "../http/limits.ts";
import { type CallLimit, type Links, withCallLimit, withLink } from "../link/client.ts";
import { CONNECTION_WINDOW_BYTES, LINK_CONTENT_TYPE, LINK_PATH, STREAM_WINDOW_BYTES } from "../link/frames.ts";
import { type Certificates, MIN_VERSION } from "../tls/certificates.ts";
import { connectInTime } from "./connect-in-time.ts";
import { markNeverRan } from "./failed-call.ts";
import { withSpans } from "./traced.ts";

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
  /** Records a span for each call. */
  readonly tracing?: Tracing | undefined;
}

/** Milliseconds between two lines of the log about a certificate that can't be verified. */
const LOG_EVERY_MS = 10_000;
/** Node's error codes for a certificate that can't be verified. */
const UNVERIFIED = /CERT|UNABLE_TO|INVALID_CA|HOSTNAME/;

/** Connects when it is first called. */
export function openReplica(url: string, options: ReplicaOptions) {
  const { address, secret, certificates, limit, clock, link = true, links, log, tracing } = options;
  let loggedAt = Number.NEGATIVE_INFINITY;
  // Callers get only UNAVAILABLE, and the cause does not go away by itself.
  const logUnverified = (problem: string) => {
    if (clock() - loggedAt < LOG_EVERY_MS) return;
    loggedAt = clock();
    log?.warn(
      { url, address, problem },
      "a service's certificate can't be verified: INTERNAL_TLS_CA names its authority",
    );
  };
  const pings = { pingIntervalMs: 10_000, pingTimeoutMs: 3_000 };
  const connected = (windowBytes: number) => {
    const connections = new Http2SessionManager(url, pings, {
      createConnection: (to, how) => connectInTime(to, how, address),
      settings: { initialWindowSize: windowBytes },
      // The default, but NODE_TLS_REJECT_UNAUTHORIZED can't switch it off.
      rejectUnauthorized: true,
      minVersion: MIN_VERSION,
      // Read for each new connection.
      get secureContext() {
        return certificates?.current().context;
      },
    });
    return { connections, sessions: watched(connections, logUnverified) };
  };
  const { connections, sessions } = connected(STREAM_WINDOW_BYTES);
  // A connection of their own, so that streams take no room from calls. Its windows are small: many streams have slow readers.
  const forStreams = connected(WAITING_BYTES);
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
  const transport: Transport = { unary: over(sessions).unary, stream: over(forStreams.sessions).stream };
  const linkHeaders = { "content-type": LINK_CONTENT_TYPE, te: "trailers", ...proof };
  const connect = (isAgain: boolean) => {
    // Peers are authenticated once per connection. A new one may succeed, if certificates have changed on either side.
    if (isAgain && certificates) for (const { leave } of [sessions, forStreams.sessions]) leave();
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
    streams: forStreams.sessions.open,
    /** Ends the connection for unary calls, which its link would keep for ever. Streams go on. */
    endCalls: (): void => connections.abort(),
    close(): void {
      connections.abort();
      forStreams.connections.abort();
    },
  };
}

/** Bytes of a stream that may wait for a slow reader: HTTP/2's initial window (RFC 9113, 6.9.2). */
const WAITING_BYTES = 65_535;

const guarded = new WeakSet<Http2Session>();

/**
 * From this stream number on a connection is left for a new one. A client has 2^30 of them in a connection (RFC 9113, 5.1.1):
 * enough for 12 days at a thousand calls a second.
 */
const LAST_STREAMS = 2 ** 31 - 2 ** 16;

/** How often it is checked whether a request that waits for a connection still has to, in milliseconds. */
const FORGOTTEN_MS = 100;

/**
 * Asks again when there is a connection and the request does not get it. Connect-node 2.2 forgets the requests that wait for
 * a connection if it puts another one in its place, as it does when one is lost while it is being verified.
 */
async function remembered<T>(sessions: Http2SessionManager, ask: () => Promise<T>): Promise<T> {
  const asked = ask();
  for (;;) {
    const given = await Promise.race([asked, sleep(FORGOTTEN_MS, undefined, { ref: false })]);
    if (given) return given;
    if (/open|idle/.test(sessions.state())) return remembered(sessions, ask);
  }
}

/**
 * Adds five things to the sessions that connect-node 2.2 lacks. It remembers the requests that wait for a connection. It marks
 * the errors of requests that no server worked on, which otherwise look like those of a lost reply. It listens to the last
 * error of a connection, which would end the process if a GOAWAY had closed the connection and a request came before that
 * error (connect-es issue 1768). It leaves a connection before its stream numbers run out. And it counts the streams that are
 * open, on connections that were left, too. `leave` makes the next request open a new connection; requests under way end on
 * the old one.
 */
function watched(
  sessions: Http2SessionManager,
  logUnverified: (problem: string) => void,
): NonNullable<GrpcTransportOptions["sessionManager"]> & { leave(): void; open(): number } {
  let newest: Http2Session | undefined;
  let open = 0;
  // By itself Node leaves the brackets of an IPv6 address out, which servers refuse.
  const { host } = new URL(sessions.authority);
  return {
    authority: sessions.authority,
    leave: () => newest?.close(),
    open: () => open,
    async request(method, path, headers, options) {
      try {
        const ask = () => sessions.request(method, path, { ...headers, ":authority": host }, options);
        const stream = await remembered(sessions, ask);
        open++;
        stream.once("close", () => open--);
        stream.once("error", (error) => stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && markNeverRan(error));
        if (stream.session && !guarded.has(stream.session)) {
          guarded.add(stream.session);
          newest = stream.session;
          stream.session.on("error", () => {});
          stream.session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
        }
        // Once the request is sent: a connection that is closed sends no request that still waits.
        const { session, id = 0 } = stream;
        if (id > LAST_STREAMS) setImmediate(() => session?.close());
        return stream;
      } catch (thrown) {
        const { rawMessage, cause } = ConnectError.from(thrown);
        if (UNVERIFIED.test((cause as NodeJS.ErrnoException | undefined)?.code ?? "")) logUnverified(rawMessage);
        const words = `no connection to ${sessions.authority}: ${rawMessage}`;
        throw markNeverRan(new ConnectError(words, Code.Unavailable, undefined, undefined, thrown));
      }
    },
    notifyResponseByteRead: (stream) => sessions.notifyResponseByteRead(stream),
  };
}
