/** TLS at a server's port: the certificate that it shows, and how it knows the system's own processes by theirs. */
import { constants } from "node:crypto";
import type { SecureServerOptions } from "node:http2";
import type { Server, TLSSocket } from "node:tls";
import type { Logger } from "@petstore/runtime/log";
import type { Watched } from "@petstore/runtime/watched-files";
import { bearsName, type Certificates } from "../tls/certificates.ts";

export interface ServerTls {
  /** With a `ca`, clients are asked for a certificate of that CA. They need not present one. */
  readonly certificates: Watched<Certificates>;
  /** Names in the certificates of the system's own processes, see `bearsName`. By default no certificate is one of theirs. */
  readonly peerNames?: readonly string[] | undefined;
}

/** Milliseconds between two lines of the log about failed handshakes, or about strangers' certificates, for all clients. */
const LOG_EVERY_MS = 1000;

export function secureOptions({ certificates, peerNames = [] }: ServerTls, log?: Logger) {
  const settings = () => ({
    ...certificates.current().options,
    // A renegotiation would be a handshake that nothing limits.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });
  const options: SecureServerOptions = {
    ...settings(),
    requestCert: certificates.current().options.ca !== undefined,
    rejectUnauthorized: false, // a stranger may present any certificate, or none
  };
  const logging = (what: string) =>
    atMostEvery(LOG_EVERY_MS, (problem: string, address: string | undefined, others: number) =>
      log?.info({ problem, address, others: others || undefined }, what),
    );
  const logFailure = logging("a TLS handshake failed");
  const logStranger = logging("a client's certificate is none of the system's own processes");

  return {
    options,
    /** Shows new connections the newest certificate, and logs failed handshakes. */
    follow(server: Pick<Server, "setSecureContext" | "on">): void {
      certificates.onChange(() => server.setSecureContext(settings()));
      server.on("tlsClientError", ({ code, message }: NodeJS.ErrnoException, socket) => {
        logFailure(code ?? message, socket.remoteAddress);
        socket.destroy();
      });
    },
    /** A resumed session proves nothing, for its certificate may have expired since: a peer needs a full handshake. */
    proves(socket: TLSSocket): boolean {
      const certificate = socket.getPeerX509Certificate();
      if (!certificate || socket.isSessionReused()) return false;
      const isNamed = socket.authorized && bearsName(certificate, peerNames);
      if (!isNamed) logStranger(`${socket.authorizationError ?? "it bears another name"}`, socket.remoteAddress);
      return isNamed;
    },
  };
}

/** Calls `say` at most once in `ms` milliseconds. `others` is the number of calls that were left out before. */
function atMostEvery(ms: number, say: (problem: string, address: string | undefined, others: number) => void) {
  let isSilent = false;
  let others = 0;
  return (problem: string, address: string | undefined) => {
    if (isSilent) return void others++;
    say(problem, address, others);
    [isSilent, others] = [true, 0];
    setTimeout(() => (isSilent = false), ms).unref();
  };
}
