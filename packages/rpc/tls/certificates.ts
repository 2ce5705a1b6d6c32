/**
 * The certificates that a process presents, their keys, and the CAs that it trusts: files that are read again when they change.
 * And how it recognises the certificates of the system's own processes.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import type { Runtime } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import { problemOf, type Watched, watchFiles } from "@petstore/runtime/watched-files";
import type { ServerTls } from "../http/secure.ts";

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
  const open = (files: CertificateFiles, prefix: string) =>
    openCertificates(
      files,
      `${prefix}TLS_CERT, ${prefix}TLS_KEY${files.ca ? " or INTERNAL_TLS_CA" : ""}`,
      runtime,
      stack,
    );
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
    describe: ({ options }) => describe(`${options.cert}`),
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

function describe(cert: string): object {
  const { subjectAltName: names, validToDate } = new X509Certificate(cert);
  return { names, validTo: validToDate.toISOString() };
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
