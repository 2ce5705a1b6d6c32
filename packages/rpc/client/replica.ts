/** One process of a service as its callers see it: an HTTP/2 connection, and what an error tells about a call. */
import { constants, type Http2Session } from "node:http2";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransportOptions, Http2SessionManager } from "@connectrpc/connect-node";
import { withBatching } from "../batching/client.ts";
import { MAX_BATCH_BYTES } from "../batching/parts.ts";
import { SECRET_HEADER } from "../call.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { MAX_MESSAGE_BYTES } from "../server/message-limit.ts";
import type { CallLimit } from "./call-limit.ts";

/** Time to answer whether it serves. */
const CHECK_MS = 1000;

export interface Replica {
  /** Where it is, such as "http://127.0.0.1:8081". */
  readonly url: string;
  /** Calls of one tick travel together. */
  readonly transport: Transport;
  /** Whether it says that it takes calls; false, too, when it does not answer within a second. Never rejects. */
  isServing(): Promise<boolean>;
  /** Whether it leaves that question unanswered for a second, which a broken connection does not. Never rejects. */
  isSilent(): Promise<boolean>;
  close(): void;
}

/**
 * Connects when it is first called. `secret` lets calls through to internal services, and their caller be believed. The
 * limit may be one for several replicas.
 */
export function openReplica(url: string, secret: string, limit: CallLimit): Replica {
  const pings = { pingIntervalMs: 10_000, pingTimeoutMs: 3_000 };
  // As by default, but not to be switched off by NODE_TLS_REJECT_UNAUTHORIZED.
  const sessions = new Http2SessionManager(url, pings, { rejectUnauthorized: true });
  const transport = createGrpcTransport({
    baseUrl: url,
    sessionManager: watched(sessions),
    readMaxBytes: MAX_BATCH_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    interceptors: [
      (next) => (request) => {
        request.header.set(SECRET_HEADER, secret);
        return next(request);
      },
    ],
  });
  const health = createClient(Health, transport);
  return {
    url,
    transport: withBatching(transport, limit),
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
    close: () => sessions.abort(),
  };
}

const unsent = new WeakSet<object>();

/**
 * True when the call surely never ran: there was no connection to send it on, or the server said that it left the stream
 * alone (RFC 9113 section 8.7), as one does that is shutting down and had sent its GOAWAY.
 */
export const neverRan = (error: ConnectError): boolean =>
  unsent.has(error) || (error.cause instanceof Error && unsent.has(error.cause));

const guarded = new WeakSet<Http2Session>();

/**
 * The sessions, and two things that connect-node 2.2 lacks. It remembers the errors of requests that no server worked on,
 * which by themselves look like those of a lost reply. And it listens to the last error of a connection, which would end
 * the process when a GOAWAY had closed the connection and a request came before that error (connect-es issue 1768).
 */
function watched(sessions: Http2SessionManager): NonNullable<GrpcTransportOptions["sessionManager"]> {
  return {
    authority: sessions.authority,
    async request(method, path, headers, options) {
      try {
        const stream = await sessions.request(method, path, headers, options);
        stream.once("error", (error) => stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && unsent.add(error));
        if (stream.session && !guarded.has(stream.session)) {
          guarded.add(stream.session);
          stream.session.on("error", () => {});
        }
        return stream;
      } catch (thrown) {
        const { rawMessage } = ConnectError.from(thrown);
        const words = `no connection to ${sessions.authority}: ${rawMessage}`;
        const error = new ConnectError(words, Code.Unavailable, undefined, undefined, thrown);
        unsent.add(error);
        throw error;
      }
    },
    notifyResponseByteRead: (stream) => sessions.notifyResponseByteRead(stream),
  };
}
