/** Opens the certificates that a process presents at its port and to other processes. */
import type { Runtime } from "@petstore/runtime/clock";
import type { Watched } from "@petstore/runtime/watched-files";
import type { ServerTls } from "../http/secure.ts";
import { type CertificateFiles, type Certificates, openCertificates } from "./certificates.ts";

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
