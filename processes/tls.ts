/** The settings for the certificates and secrets that a process shows, and those that it accepts. */
import type { TlsConfig } from "@petstore/rpc/tls/open";
import { ConfigError, list, optional, secret, text, type Values, withDefault } from "@petstore/runtime/environment";
import { addressSettings, type ProcessName } from "./names.ts";

/** The name in the certificates of the petstore's own processes, unless configured otherwise. */
export const PEER_NAME = "spiffe://petstore/process";

export const tlsSettings = {
  TLS_CERT: optional(text),
  TLS_KEY: optional(text),
  INTERNAL_SECRET: optional(secret(32)),
  INTERNAL_TLS_CA: optional(text),
  INTERNAL_TLS_CERT: optional(text),
  INTERNAL_TLS_KEY: optional(text),
  INTERNAL_TLS_NAMES: withDefault(list(text), [PEER_NAME]),
};

/** The certificates of the port, and those for other processes. Throws `ConfigError`. */
export function tlsConfig(
  values: Values<typeof tlsSettings & typeof addressSettings>,
  name: ProcessName,
): Pick<TlsConfig, "tls" | "internalTls"> {
  const { TLS_CERT, TLS_KEY, INTERNAL_SECRET, INTERNAL_TLS_CA: ca, INTERNAL_TLS_CERT, INTERNAL_TLS_KEY } = values;
  const problems: string[] = [];
  const need = (name: string, value: unknown, why: string) => {
    if (value === undefined) problems.push(`${name} is not set: ${why}.`);
  };
  const pair = (cert: string | undefined, key: string | undefined, prefix: string) => {
    if (cert !== undefined) need(`${prefix}TLS_KEY`, key, `${prefix}TLS_CERT needs the key of its certificate`);
    if (key !== undefined) need(`${prefix}TLS_CERT`, cert, `${prefix}TLS_KEY needs the certificate that it is for`);
    return cert === undefined || key === undefined ? undefined : { cert, key };
  };
  const own = pair(TLS_CERT, TLS_KEY, "");
  const internal = pair(INTERNAL_TLS_CERT, INTERNAL_TLS_KEY, "INTERNAL_");
  if (ca === undefined) {
    need("INTERNAL_SECRET", INTERNAL_SECRET, `it must be ${secret(32).description}`);
    if (internal) need("INTERNAL_TLS_CA", ca, "INTERNAL_TLS_CERT is for mutual TLS, which needs it");
  } else {
    need("INTERNAL_TLS_CERT", internal ?? own, "INTERNAL_TLS_CA needs a certificate to show, this one or TLS_CERT");
    if (name !== "gateway") need("TLS_CERT", own, "INTERNAL_TLS_CA needs a port with TLS");
    for (const variable of Object.keys(addressSettings) as (keyof typeof addressSettings)[])
      for (const address of INTERNAL_SECRET ? [] : (values[variable] ?? []))
        if (!address.startsWith("https:"))
          problems.push(`${variable}=${address} is wrong: it must be an https address, where certificates are shown.`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const shown = internal ?? own;
  return {
    tls: own && { ...own, ca: name === "gateway" ? undefined : ca },
    internalTls: ca === undefined || !shown ? undefined : { ...shown, ca },
  };
}
