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
  const own = namesIn(subjectAltName ?? "");
  return names.some((name) => own.includes(name));
}

/**
 * Parses names in Node's notation: `URI:spiffe://a/b, DNS:c, DNS:"d, DNS:e"`. Node quotes a name with a character that could
 * look like its end; such a name is left out, for it is none of ours.
 */
function namesIn(text: string): string[] {
  const names: string[] = [];
  let isQuoted = false;
  let start = 0;
  const end = (at: number) => {
    const name = /^(?:URI|DNS):([^"]+)$/.exec(text.slice(start, at))?.[1];
    if (name !== undefined) names.push(name);
    start = at + ", ".length;
  };
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') isQuoted = !isQuoted;
    else if (text[at] === "\\" && isQuoted) at++;
    else if (text[at] === "," && !isQuoted) end(at);
  }
  end(text.length);
  return names;
}
