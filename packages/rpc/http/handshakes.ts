/** TLS at a server's port: from a connection that was accepted to one that HTTP is spoken over. */
import { constants } from "node:crypto";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { Logger } from "@petstore/runtime/log";
import type { Watched } from "@petstore/runtime/watched-files";
import type { Certificates } from "../tls/certificates.ts";
import { bearsName } from "../tls/peer-names.ts";
import { callerNetwork } from "./caller-network.ts";
import { peek } from "./peek.ts";
import type { Turns } from "./turns.ts";

export interface ServerTls {
  /** With a `ca`, clients are asked for a certificate of it. They need not show one. */
  readonly certificates: Watched<Certificates>;
  /** What the certificates of the system's own processes bear, see `bearsName`. By default none is one of them. */
  readonly peerNames?: readonly string[] | undefined;
}

/** Goes on with a connection once its handshake is done; `isPeer` when it has proved to be one of the system's own processes. */
export type Secure = (socket: Socket, done: (secured: Socket, isPeer: boolean) => void) => void;

export interface HandshakeOptions extends ServerTls {
  /** Time for a handshake, from the connection on. */
  readonly limitMs: number;
  readonly turns: Turns;
  readonly log?: Logger | undefined;
}

/** What a record of a handshake begins with: its type, two bytes of version, and its length (RFC 8446, 5.1). */
const HANDSHAKE = 22;
const RECORD_HEAD_BYTES = 5;

/** What a handshake counts for among what is done in a turn of the event loop: a signature, and more. */
const WORK_OF_HANDSHAKE = 8;

/** So often a line of the log tells of handshakes that failed, or of certificates, whoever shows them. */
const TELL_MS = 1000;

/**
 * Handshakes for the connections of an HTTP server, which take turns as whatever else connections ask for: a signature
 * costs as much as some requests. What is no TLS is for the server's `clientError`.
 */
export function createHandshakes(http: Server, options: HandshakeOptions): Secure {
  const { certificates, peerNames = [], limitMs, turns, log } = options;
  const settings = () => ({
    ...certificates.current().options,
    // Each would be another handshake, without a turn.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });
  const tls = createServer({
    ...settings(),
    ALPNProtocols: ["h2", "http/1.1"],
    requestCert: certificates.current().options.ca !== undefined,
    rejectUnauthorized: false, // a stranger may show what it likes, or nothing
  });
  // For new connections: those that are open go on as they are.
  certificates.onChange(() => tls.setSecureContext(settings()));
  const telling = (what: string) =>
    atMostEvery(TELL_MS, (problem: string, socket: Socket, others: number) =>
      log?.info({ problem, address: socket.remoteAddress, others: others || undefined }, what),
    );
  const tell = telling("a TLS handshake failed");
  const tellStranger = telling("a client's certificate is none of the system's own processes");

  /** What follows on connections that have begun a handshake. */
  const begun = new WeakMap<object, (secured: TLSSocket) => void>();
  tls.on("secureConnection", (secured) => begun.get(acceptedOf(secured))?.(secured));
  tls.on("tlsClientError", ({ code, message }: NodeJS.ErrnoException, secured) => {
    secured.destroy();
    tell(code ?? message, acceptedOf(secured));
  });

  return (socket, done) => {
    const late = () => {
      tell("it took too long", socket);
      socket.destroy();
    };
    const timer = setTimeout(late, limitMs);
    socket.once("close", () => clearTimeout(timer));
    begun.set(socket, (secured) => {
      clearTimeout(timer);
      secured.allowHalfOpen = true;
      done(secured, isPeer(secured));
    });
    // Who ends its side before the handshake is over has gone. TLS does as its connection does.
    socket.allowHalfOpen = false;
    peek(socket, limitMs, isHandshake, (is) =>
      turns(callerNetwork(socket.remoteAddress), () => {
        if (socket.destroyed) return undefined;
        if (is) tls.emit("connection", socket);
        else refusePlain(http, socket);
        return WORK_OF_HANDSHAKE;
      }),
    );
  };

  /** What was proved before, and is resumed, may have ended since: that takes a whole handshake. */
  function isPeer(secured: TLSSocket): boolean {
    const shown = secured.getPeerX509Certificate();
    if (!shown || secured.isSessionReused()) return false;
    const isNamed = secured.authorized && bearsName(shown, peerNames);
    if (!isNamed) tellStranger(`${secured.authorizationError ?? "it bears another name"}`, secured);
    return isNamed;
  }
}

/** The connection that was accepted, under the one that is secured. Node does not document where it is. */
const acceptedOf = (secured: TLSSocket): Socket => (secured as TLSSocket & { readonly _parent: Socket })._parent;

/** Undefined until the whole record has come: what it asks for is done at once. */
function isHandshake(head: Buffer): boolean | undefined {
  if (head[0] !== HANDSHAKE) return false;
  return head.length < RECORD_HEAD_BYTES || head.length < RECORD_HEAD_BYTES + head.readUInt16BE(3) ? undefined : true;
}

function refusePlain(http: Server, socket: Socket): void {
  const error = Object.assign(new Error("plain HTTP on a port of TLS"), { code: "ERR_SSL_HTTP_REQUEST" });
  if (!http.emit("clientError", error, socket)) socket.destroy();
}

/** Says something at most so often, and how much was left unsaid. */
function atMostEvery(ms: number, say: (problem: string, socket: Socket, others: number) => void) {
  let isSilent = false;
  let others = 0;
  return (problem: string, socket: Socket) => {
    if (isSilent) return void others++;
    say(problem, socket, others);
    [isSilent, others] = [true, 0];
    setTimeout(() => (isSilent = false), ms).unref();
  };
}
