/** Opening connections to a service: none may take for ever. */
import type { SecureClientSessionOptions } from "node:http2";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** Until a connection is there, with its TLS handshake. Longer than a lost packet takes to be sent again. */
export const CONNECT_MS = 3_000;

/**
 * Opens a socket for HTTP/2, as node does by itself, and gives it up after `CONNECT_MS`. Node has no such limit: of a peer
 * that has gone in the middle of a handshake, which owes nothing that could be missed, it would wait for ever.
 */
export function connectInTime({ protocol, hostname, port }: URL, options: SecureClientSessionOptions): Socket {
  const host = hostname.replace(/^\[(.*)\]$/, "$1"); // an IPv6 address
  const isSecure = protocol === "https:";
  const socket = isSecure
    ? connectTls({
        ...options,
        host,
        port: Number(port || 443),
        ALPNProtocols: ["h2"],
        servername: isIP(host) ? "" : host,
      })
    : connect({ host, port: Number(port || 80) });
  const late = setTimeout(
    () => socket.destroy(new Error(`it took longer than ${CONNECT_MS / 1000} s to connect`)),
    CONNECT_MS,
  );
  const stop = () => clearTimeout(late);
  return socket.once(isSecure ? "secureConnect" : "connect", stop).once("close", stop);
}
