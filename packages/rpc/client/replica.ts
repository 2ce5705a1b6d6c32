/** One process of a service as its callers see it: an HTTP/2 connection for calls and one for streams, and what an error tells about a call. */
import { constants, type Http2Session } from "node:http2";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransportOptions, Http2SessionManager } from "@connectrpc/connect-node";
import type { Clock } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import type { Watched } from "@petstore/runtime/watched-files";
import { SECRET_HEADER } from "../call.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { withLink } from "../link/client.ts";
import { CONNECTION_WINDOW_BYTES, LINK_CONTENT_TYPE, LINK_PATH, STREAM_WINDOW_BYTES } from "../link/version.ts";
import { MAX_MESSAGE_BYTES } from "../server/message-limit.ts";
import { type Certificates, MIN_VERSION } from "../tls/certificates.ts";
import { type CallLimit, withCallLimit } from "./call-limit.ts";
import { connectInTime } from "./connect-in-time.ts";
import { sayTimeout } from "./grpc-timeout.ts";
import { markNeverRan } from "./never-ran.ts";

/** Time to answer whether it serves. */
const CHECK_MS = 1000;

export interface Replica {
  /** Where it is, such as "http://127.0.0.1:8081". */
  readonly url: string;
  readonly transport: Transport;
  /** Whether it says that it takes calls; false, too, when it does not answer within a second. Never rejects. */
  isServing(): Promise<boolean>;
  /** Whether it leaves that question unanswered for a second, which a broken connection does not. Never rejects. */
  isSilent(): Promise<boolean>;
  close(): void;
}

export interface ReplicaOptions {
  /** Lets calls through to internal services, and their caller be believed, unless a certificate does. */
  readonly secret?: string | undefined;
  /** What a replica with an https address is shown, and the authorities it is verified by. By default nothing, and Node's. */
  readonly certificates?: Watched<Certificates> | undefined;
  /** It may be one for several replicas. */
  readonly limit: CallLimit;
  readonly clock: Clock;
  readonly log?: Pick<Logger, "warn"> | undefined;
  /** Whether unary calls go over a link, where the replica has one. True by default. */
  readonly link?: boolean | undefined;
}

/** So often a line of the log tells of a certificate that can't be verified. */
const TELL_MS = 10_000;
/** How Node names what is wrong with a certificate. */
const UNVERIFIED = /CERT|UNABLE_TO|INVALID_CA|HOSTNAME/;

/** Connects when it is first called. */
export function openReplica(url: string, options: ReplicaOptions): Replica {
  const { secret, certificates, limit, clock, link = true, log } = options;
  let toldAt = Number.NEGATIVE_INFINITY;
  // Callers hear no more than that there is no answer, and this does not pass by itself.
  const tellUnverified = (problem: string) => {
    if (clock() - toldAt < TELL_MS) return;
    toldAt = clock();
    log?.warn({ url, problem }, "a service's certificate can't be verified: INTERNAL_TLS_CA names its authority");
  };
  const pings = { pingIntervalMs: 10_000, pingTimeoutMs: 3_000 };
  const connected = (windowBytes: number) => {
    const connections = new Http2SessionManager(url, pings, {
      createConnection: connectInTime,
      settings: { initialWindowSize: windowBytes },
      // As by default, but not to be switched off by NODE_TLS_REJECT_UNAUTHORIZED.
      rejectUnauthorized: true,
      minVersion: MIN_VERSION,
      // Looked at for each connection.
      get secureContext() {
        return certificates?.current().context;
      },
    });
    return { connections, sessions: watched(connections, tellUnverified) };
  };
  const { connections, sessions } = connected(STREAM_WINDOW_BYTES);
  // However many there are, calls have room on their connection. Little waits of each, for there are many, and slow readers.
  const forStreams = connected(WAITING_BYTES);
  const shown: Record<string, string> = secret === undefined ? {} : { [SECRET_HEADER]: secret };
  const over = (sessionManager: GrpcTransportOptions["sessionManager"]) =>
    createGrpcTransport({
      baseUrl: url,
      sessionManager,
      readMaxBytes: MAX_MESSAGE_BYTES,
      writeMaxBytes: MAX_MESSAGE_BYTES,
      // To pack an answer costs more than to send it as it is to the next process.
      acceptCompression: [],
      interceptors: [
        sayTimeout,
        (next) => (request) => {
          for (const [name, value] of Object.entries(shown)) request.header.set(name, value);
          return next(request);
        },
      ],
    });
  const transport: Transport = { unary: over(sessions).unary, stream: over(forStreams.sessions).stream };
  const linkHeaders = { "content-type": LINK_CONTENT_TYPE, te: "trailers", ...shown };
  const connect = (isAgain: boolean) => {
    // Who calls is judged once for each connection: with other certificates, here or there, another one may be believed.
    if (isAgain && certificates) for (const { leave } of [sessions, forStreams.sessions]) leave();
    return sessions.request("POST", LINK_PATH, linkHeaders, {});
  };
  const health = createClient(Health, transport);
  return {
    url,
    transport: link ? withLink(transport, { connect, clock, limit }) : withCallLimit(transport, limit),
    isServing: () =>
      health.check({}, { timeoutMs: CHECK_MS }).then(
        ({ status }) => status === Status.SERVING,
        () => false,
      ),
    isSilent: () =>
      health.check({}, { timeoutMs: CHECK_MS }).then(
        () => false,
        (error) => ConnectError.from(error).code === Code.DeadlineExceeded,
      ),
    close() {
      connections.abort();
      forStreams.connections.abort();
    },
  };
}

/** Bytes of a stream that wait for a slow reader: what HTTP/2 begins with (RFC 9113, 6.9.2). */
const WAITING_BYTES = 65_535;

const guarded = new WeakSet<Http2Session>();

/**
 * The sessions, and two things that connect-node 2.2 lacks. It remembers the errors of requests that no server worked on,
 * which by themselves look like those of a lost reply. And it listens to the last error of a connection, which would end
 * the process when a GOAWAY had closed the connection and a request came before that error (connect-es issue 1768).
 * `leave` lets the next request open another connection; those under way end on the one that there is.
 */
function watched(
  sessions: Http2SessionManager,
  tellUnverified: (problem: string) => void,
): NonNullable<GrpcTransportOptions["sessionManager"]> & { leave(): void } {
  let newest: Http2Session | undefined;
  return {
    authority: sessions.authority,
    leave: () => newest?.close(),
    async request(method, path, headers, options) {
      try {
        const stream = await sessions.request(method, path, headers, options);
        stream.once("error", (error) => stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && markNeverRan(error));
        if (stream.session && !guarded.has(stream.session)) {
          guarded.add(stream.session);
          newest = stream.session;
          stream.session.on("error", () => {});
          stream.session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
        }
        return stream;
      } catch (thrown) {
        const { rawMessage, cause } = ConnectError.from(thrown);
        if (UNVERIFIED.test((cause as NodeJS.ErrnoException | undefined)?.code ?? "")) tellUnverified(rawMessage);
        const words = `no connection to ${sessions.authority}: ${rawMessage}`;
        throw markNeverRan(new ConnectError(words, Code.Unavailable, undefined, undefined, thrown));
      }
    },
    notifyResponseByteRead: (stream) => sessions.notifyResponseByteRead(stream),
  };
}
