/** The HTTP/2 connections to one process of a service: how they are opened and left, and what is noted of their requests. */
import { constants, type Http2Session, type SecureClientSessionOptions } from "node:http2";
import { connect, isIP, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { type GrpcTransportOptions, Http2SessionManager } from "@connectrpc/connect-node";
import { hostOfUrl } from "../http/address.ts";
import { CONNECTION_WINDOW_BYTES } from "../link/frames.ts";
import { MIN_VERSION } from "../tls/certificates.ts";
import { markNeverRan } from "./failed-call.ts";
import type { ReplicaOptions } from "./replica.ts";

/** Node's error codes for a certificate that can't be verified. */
const UNVERIFIED = /CERT|UNABLE_TO|INVALID_CA|HOSTNAME/;

const guarded = new WeakSet<Http2Session>();

/**
 * From this stream number on a connection is left for a new one. A client has 2^30 of them in a connection (RFC 9113, 5.1.1):
 * enough for 12 days at a thousand calls a second.
 */
const LAST_STREAMS = 2 ** 31 - 2 ** 16;

/**
 * One connection at a time. Adds five things that connect-node 2.2 lacks. It remembers the requests that wait for a connection.
 * It marks the errors of requests that no server worked on, which otherwise look like those of a lost reply. It listens to the
 * last error of a connection, which would end the process if a GOAWAY had closed the connection and a request came before that
 * error (connect-es issue 1768). It leaves a connection before its stream numbers run out. And it counts the streams that are
 * open, on connections that were left, too. `leave` makes the next request open a new connection; requests under way end on
 * the old one.
 */
export function openSessions(
  { url, address, certificates }: Pick<ReplicaOptions, "address" | "certificates"> & { readonly url: string },
  windowBytes: number,
  logUnverified: (problem: string) => void,
) {
  const pings = { pingIntervalMs: 10_000, pingTimeoutMs: 3_000 };
  const sessions = new Http2SessionManager(url, pings, {
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
  let newest: Http2Session | undefined;
  let open = 0;
  // By itself Node leaves the brackets of an IPv6 address out, which servers refuse.
  const { host } = new URL(sessions.authority);
  const manager: NonNullable<GrpcTransportOptions["sessionManager"]> = {
    authority: sessions.authority,
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
  return { ...manager, leave: () => newest?.close(), open: () => open, close: () => sessions.abort() };
}

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

/** Time for a connection and its TLS handshake. Longer than TCP takes to retransmit a lost packet. */
const CONNECT_MS = 3_000;

/**
 * Opens a socket for HTTP/2, as node does by itself, and destroys it if it is not connected after `CONNECT_MS`. Node has no
 * such limit: for a peer that vanished in the middle of a handshake it would wait for ever. The certificate has to be for the
 * host of the URL, also where its `address` is given.
 */
function connectInTime(url: URL, options: SecureClientSessionOptions, address?: string): Socket {
  const { protocol, port } = url;
  const host = hostOfUrl(url);
  const isSecure = protocol === "https:";
  const socket = isSecure
    ? connectTls({
        ...options,
        host: address ?? host,
        port: Number(port || 443),
        ALPNProtocols: ["h2"],
        servername: isIP(host) ? "" : host,
      })
    : connect({ host: address ?? host, port: Number(port || 80) });
  const late = setTimeout(
    () => socket.destroy(new Error(`it took longer than ${CONNECT_MS / 1000} s to connect`)),
    CONNECT_MS,
  );
  const stop = () => clearTimeout(late);
  return socket.once(isSecure ? "secureConnect" : "connect", stop).once("close", stop);
}
