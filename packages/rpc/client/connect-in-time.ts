/** Opens connections to a service, within a time limit. */
import type { SecureClientSessionOptions } from "node:http2";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { hostOfUrl } from "../http/address.ts";

/** Time for a connection and its TLS handshake. Longer than TCP takes to retransmit a lost packet. */
const CONNECT_MS = 3_000;

/**
 * Opens a socket for HTTP/2, as node does by itself, and destroys it if it is not connected after `CONNECT_MS`. Node has no
 * such limit: for a peer that vanished in the middle of a handshake it would wait for ever. The certificate has to be for the
 * host of the URL, also where its `address` is given.
 */
export function connectInTime(url: URL, options: SecureClientSessionOptions, address?: string): Socket {
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
