/** TLS handshakes at a server's port, from the accepted connection to one that carries HTTP. */
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
  /** With a `ca`, clients are asked for a certificate of that CA. They need not present one. */
  readonly certificates: Watched<Certificates>;
  /** Names in the certificates of the system's own processes, see `bearsName`. By default no certificate is one of theirs. */
  readonly peerNames?: readonly string[] | undefined;
}

/** Calls `done` once a connection's handshake is done; `isPeer` if it has proved to be one of the system's own processes. */
export type Secure = (socket: Socket, done: (secured: Socket, isPeer: boolean) => void) => void;

export interface HandshakeOptions extends ServerTls {
  /** Time for a handshake, from when the connection was accepted. */
  readonly limitMs: number;
  readonly turns: Turns;
  readonly log?: Logger | undefined;
}

/** The header of a handshake record: its type, its version in two bytes, its length in two (RFC 8446, 5.1). */
const HANDSHAKE = 22;
const RECORD_HEAD_BYTES = 5;

/** How many pieces of work of a turn a handshake counts as: it takes a signature, and more. */
const WORK_OF_HANDSHAKE = 8;

/** Milliseconds between two lines of the log about failed handshakes, or about strangers' certificates, for all clients. */
const TELL_MS = 1000;

/**
 * Creates the handshakes for the connections of an HTTP server. They take turns with everything else that connections ask
 * for, since a signature costs as much as some requests. A connection without TLS goes to the server's `clientError`.
 */
export function createHandshakes(http: Server, options: HandshakeOptions): Secure {
  const { certificates, peerNames = [], limitMs, turns, log } = options;
  const settings = () => ({
    ...certificates.current().options,
    // A renegotiation would be a handshake that takes no turn.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });
  const tls = createServer({
    ...settings(),
    ALPNProtocols: ["h2", "http/1.1"],
    requestCert: certificates.current().options.ca !== undefined,
    rejectUnauthorized: false, // a stranger may present any certificate, or none
  });
  // For new connections only: open ones go on as they are.
  certificates.onChange(() => tls.setSecureContext(settings()));
  const telling = (what: string) =>
    atMostEvery(TELL_MS, (problem: string, socket: Socket, others: number) =>
      log?.info({ problem, address: socket.remoteAddress, others: others || undefined }, what),
    );
  const tell = telling("a TLS handshake failed");
  const tellStranger = telling("a client's certificate is none of the system's own processes");

  /** What to call when the handshake of a connection is done. */
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
    // A client that ends its side before the handshake is over has gone. The TLS socket takes this setting over.
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

  /** A resumed session proves nothing, for its certificate may have expired since: a peer needs a full handshake. */
  function isPeer(secured: TLSSocket): boolean {
    const shown = secured.getPeerX509Certificate();
    if (!shown || secured.isSessionReused()) return false;
    const isNamed = secured.authorized && bearsName(shown, peerNames);
    if (!isNamed) tellStranger(`${secured.authorizationError ?? "it bears another name"}`, secured);
    return isNamed;
  }
}

/** The accepted connection below a TLS socket. Node does not document this property. */
const acceptedOf = (secured: TLSSocket): Socket => (secured as TLSSocket & { readonly _parent: Socket })._parent;

/** Undefined until the whole first record has arrived, for TLS works on it as soon as it has it: that must be in its turn. */
function isHandshake(head: Buffer): boolean | undefined {
  if (head[0] !== HANDSHAKE) return false;
  return head.length < RECORD_HEAD_BYTES || head.length < RECORD_HEAD_BYTES + head.readUInt16BE(3) ? undefined : true;
}

function refusePlain(http: Server, socket: Socket): void {
  const error = Object.assign(new Error("plain HTTP on a port of TLS"), { code: "ERR_SSL_HTTP_REQUEST" });
  if (!http.emit("clientError", error, socket)) socket.destroy();
}

/** Calls `say` at most once in `ms` milliseconds. `others` is the number of calls that were left out before. */
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
