/**
 * The certificates that a process presents, their keys, and the CAs that it trusts: files that are read again when they change.
 * And TLS at its port, which recognises the certificates of the system's own processes.
 */
import { constants, createPrivateKey, X509Certificate } from "node:crypto";
import type { SecureServerOptions } from "node:http2";
import {
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
  type Server,
  type TLSSocket,
} from "node:tls";
import type { Runtime } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import type { Logger } from "@petstore/runtime/log";
import { problemOf, type Watched, watchFiles } from "@petstore/runtime/watched-files";

export interface CertificateFiles {
  /** The certificate and the intermediate certificates up to its CA, as PEM. */
  readonly cert: string;
  readonly key: string;
  /** Certificates of the CAs that must have issued the other end's certificate, as PEM. */
  readonly ca?: string | undefined;
}

export interface Certificates {
  readonly options: SecureContextOptions;
  /** The options as a context, ready for use. */
  readonly context: SecureContext;
}

/** TLS 1.2 or newer (RFC 9325, 3.1.1), however Node and OpenSSL are configured. */
export const MIN_VERSION = "TLSv1.2";

export interface TlsConfig {
  /** For its port. */
  readonly tls: CertificateFiles | undefined;
  /** For calls to other processes. */
  readonly internalTls: CertificateFiles | undefined;
  readonly peerNames: readonly string[];
}

/** Opens the configured files; `stack` closes them. Throws ConfigError if they can't be used. */
export async function openTls(
  { tls, internalTls, peerNames }: TlsConfig,
  runtime: Pick<Runtime, "log" | "sleep" | "random">,
  stack: AsyncDisposableStack,
): Promise<{ tls: ServerTls | undefined; certificates: Watched<Certificates> | undefined }> {
  const open = (files: CertificateFiles, prefix: string) => {
    const asked = `${prefix}TLS_CERT, ${prefix}TLS_KEY${files.ca ? " or INTERNAL_TLS_CA" : ""}`;
    return openCertificates(files, asked, runtime, stack);
  };
  return {
    tls: tls && { certificates: await open(tls, ""), peerNames },
    certificates: internalTls && (await open(internalTls, internalTls.cert === tls?.cert ? "" : "INTERNAL_")),
  };
}

/** Opens the files; `stack` closes them. Throws ConfigError, which names the settings `asked`, if they can't be used. */
export async function openCertificates(
  files: CertificateFiles,
  asked: string,
  runtime: Pick<Runtime, "log" | "sleep" | "random">,
  stack: AsyncDisposableStack,
): Promise<Watched<Certificates>> {
  const paths = [files.cert, files.key, ...(files.ca === undefined ? [] : [files.ca])];
  const watched = await watchFiles(paths, {
    name: "certificates",
    parse: ([cert = "", key = "", ca]) => certificatesOf({ cert, key, ca }, files),
    describe({ options }) {
      const { subjectAltName: names, validToDate } = new X509Certificate(`${options.cert}`);
      return { names, validTo: validToDate.toISOString() };
    },
    said: {
      again: "the certificate was read again",
      unusable: "the certificate can't be used: the one that was read before stays in use",
    },
    ...runtime,
  }).catch((err) => {
    throw new ConfigError([`${asked} can't be used: ${problemOf(err, paths)}.`]);
  });
  return stack.use(watched);
}

function certificatesOf({ cert, key, ca }: CertificateFiles, files: CertificateFiles): Certificates {
  const own = firstOfAll(cert, files.cert);
  const ownKey = readable(`${files.key} holds no private key in PEM without a passphrase`, () => createPrivateKey(key));
  if (ca !== undefined) firstOfAll(ca, `${files.ca}`);
  if (!own.checkPrivateKey(ownKey)) throw new Error(`${files.key} is not the key of the certificate in ${files.cert}`);
  const options = { cert, key, ca, minVersion: MIN_VERSION } as const;
  return { options, context: createSecureContext(options) };
}

/** Returns the first certificate of a file, after reading all. OpenSSL would silently skip a damaged one and all after it. */
function firstOfAll(pem: string, path: string): X509Certificate {
  const blocks = pem.split(/^(?=-----BEGIN )/m).filter((block) => /^-----BEGIN (\w+ )?CERTIFICATE-----/.test(block));
  const [first] = blocks.map((block, i) =>
    readable(`certificate ${i + 1} of ${blocks.length} in ${path} is damaged`, () => new X509Certificate(block)),
  );
  if (!first) throw new Error(`${path} holds no certificate in PEM`);
  return first;
}

/** Replaces an error of OpenSSL's, whose message names neither the file nor the remedy. */
function readable<T>(problem: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new Error(problem, { cause });
  }
}

/**
 * Whether a certificate has one of the names, as a URI or a DNS name in its subjectAltName (RFC 5280, 4.2.1.6). The CA alone
 * proves nothing, for it may issue other certificates, too. Names are compared literally; a wildcard matches only itself.
 */
export function bearsName(
  { subjectAltName }: Pick<X509Certificate, "subjectAltName">,
  names: readonly string[],
): boolean {
  // In Node's notation, `URI:spiffe://a/b, DNS:c, DNS:"d, DNS:e"`, a name is quoted that could look like the end of one. Such a
  // name is none of ours.
  const own = (subjectAltName ?? "").replaceAll(/"(?:[^"\\]|\\.)*(?:"|$)/g, '""').split(", ");
  return names.some((name) => own.includes(`URI:${name}`) || own.includes(`DNS:${name}`));
}

/** TLS at a server's port: the certificate that it shows, and how it knows the system's own processes by theirs. */
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
  const logFailure = seldom(log, "a TLS handshake failed");
  const logStranger = seldom(log, "a client's certificate is none of the system's own processes");

  return {
    options,
    /** Shows new connections the newest certificate, and logs failed handshakes. */
    follow(server: Pick<Server, "setSecureContext" | "on">): void {
      certificates.onChange(() => server.setSecureContext(settings()));
      server.on("tlsClientError", ({ code, message }: NodeJS.ErrnoException, socket) => {
        logFailure(code ?? message, socket.remoteAddress);
        socket.destroy();
      });
      server.on("secureConnection", readAsStream);
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

/**
 * Lets Node's parser of HTTP/1.1 read from the stream of a TLS connection, as it does where "data" has a listener. From the
 * handle, several TLS records come at once, and while an answer is still being written the parser is paused after the first:
 * it takes the second for malformed (HPE_PAUSED).
 */
function readAsStream(socket: TLSSocket): void {
  if (socket.alpnProtocol !== "h2") socket.on("data", () => {});
}

/** Logs a problem at most once in `LOG_EVERY_MS`. `others` is the number of those that were left out before. */
function seldom(log: Logger | undefined, what: string) {
  let isSilent = false;
  let others = 0;
  return (problem: string, address: string | undefined) => {
    if (isSilent) return void others++;
    log?.info({ problem, address, others: others || undefined }, what);
    [isSilent, others] = [true, 0];
    setTimeout(() => (isSilent = false), LOG_EVERY_MS).unref();
  };
}
