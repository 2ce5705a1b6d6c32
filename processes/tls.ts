/** The settings for the certificates and secrets that a process shows, and those that it accepts. */
import type { TlsConfig } from "@petstore/rpc/tls/certificates";
import {
  ConfigError,
  list,
  optional,
  path,
  secret,
  text,
  type Values,
  withDefault,
} from "@petstore/runtime/environment";
import { addressSettings, type ProcessName } from "./names.ts";

/** The name in the certificates of the petstore's own processes, unless configured otherwise. */
export const PEER_NAME = "spiffe://petstore/process";

const KEY = "Set it to the file of the certificate's key";
const CERT = "Set it to the file of the certificate that the key is for";
const mutual = { INTERNAL_TLS_CA: "It is for mutual TLS. Set it to the file of the authority" };

export const tlsSettings = {
  TLS_CERT: optional(path, { TLS_KEY: KEY }),
  TLS_KEY: optional(path, { TLS_CERT: CERT }),
  INTERNAL_SECRET: optional(secret(32)),
  INTERNAL_TLS_CA: optional(path),
  INTERNAL_TLS_CERT: optional(path, { INTERNAL_TLS_KEY: KEY, ...mutual }),
  INTERNAL_TLS_KEY: optional(path, { INTERNAL_TLS_CERT: CERT, ...mutual }),
  INTERNAL_TLS_NAMES: withDefault(list(text), [PEER_NAME], mutual),
};

/** The certificates of the port, and those for other processes. Throws `ConfigError`. */
export function tlsConfig(
  values: Values<typeof tlsSettings & typeof addressSettings>,
  name: ProcessName,
): Pick<TlsConfig, "tls" | "internalTls"> {
  const { INTERNAL_SECRET, INTERNAL_TLS_CA: ca } = values;
  const problems: string[] = [];
  const need = (name: string, value: unknown, why: string) => {
    if (value === undefined) problems.push(`${name} is not set: ${why}.`);
  };
  const own = pairOf(values.TLS_CERT, values.TLS_KEY);
  const internal = pairOf(values.INTERNAL_TLS_CERT, values.INTERNAL_TLS_KEY);
  if (ca === undefined) need("INTERNAL_SECRET", INTERNAL_SECRET, `it must be ${secret(32).description}`);
  else {
    need("INTERNAL_TLS_CERT", internal ?? own, "INTERNAL_TLS_CA needs a certificate to show, this one or TLS_CERT");
    if (name !== "gateway") need("TLS_CERT", own, "INTERNAL_TLS_CA needs a port with TLS");
    for (const variable of Object.keys(addressSettings) as (keyof typeof addressSettings)[])
      for (const address of INTERNAL_SECRET ? [] : (values[variable] ?? []))
        if (!address.startsWith("https:"))
          problems.push(`${variable}=${address} is wrong: it must be an https address, where certificates are shown.`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const certificate = internal ?? own;
  return {
    tls: own && { ...own, ca: name === "gateway" ? undefined : ca },
    internalTls: ca === undefined || !certificate ? undefined : { ...certificate, ca },
  };
}

const pairOf = (cert: string | undefined, key: string | undefined) =>
  cert === undefined || key === undefined ? undefined : { cert, key };
