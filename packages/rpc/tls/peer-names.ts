/** Recognises the certificates of the system's own processes. */
import type { X509Certificate } from "node:crypto";

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
