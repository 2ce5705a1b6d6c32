/** The settings for how external callers authenticate, and for the certificates and secrets that processes show and accept. */
import type { AuthConfig } from "@petstore/rpc/auth/authentication";
import { hostOfUrl, isLoopback } from "@petstore/rpc/http/address";
import type { TlsConfig } from "@petstore/rpc/tls/certificates";
import {
  ConfigError,
  type Format,
  format,
  list,
  type Needs,
  oneOf,
  optional,
  path,
  secret,
  text,
  type Values,
  withDefault,
} from "@petstore/runtime/environment";
import { addressSettings, type ProcessName } from "./names.ts";

/** The algorithms of RFC 7518 and 8037 with a key pair: whoever can verify a token must not be able to sign one. */
const SIGNATURES = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
] as const;

// Whoever can change the keys on their way can sign any token, hence https.
const keysLocation: Format<string> = format(
  "the https address of the issuer's keys such as https://login.example/jwks.json (http on loopback alone), or " +
    path.description,
  (location) => {
    if (!/^\w+:\/\//.test(location)) return path.read(location);
    const url = URL.parse(location);
    const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(hostOfUrl(url)));
    return isSafe ? location : undefined;
  },
);

// Whoever names credentials believes that they are required. With an explicit mode, what it does not need is left unused.
const askedBy = (mode: string): Needs => ({
  AUTH_MODE: `Set AUTH_MODE=${mode}, or AUTH_MODE=none if callers need no credentials`,
});

/** The same for all processes. */
export const authSettings = {
  AUTH_MODE: withDefault(oneOf("none", "keys", "jwt", "keys,jwt"), "none"),
  API_KEYS_FILE: optional(path, askedBy("keys")),
  JWT_ISSUER: optional(text, askedBy("jwt")),
  JWT_AUDIENCE: optional(text, askedBy("jwt")),
  JWT_JWKS: optional(keysLocation, askedBy("jwt")),
  JWT_ALGORITHMS: withDefault(list(oneOf(...SIGNATURES)), ["RS256", "ES256", "EdDSA"], askedBy("jwt")),
};

/** Undefined if callers need no credentials. Throws `ConfigError`. */
export function authConfig(values: Values<typeof authSettings>): AuthConfig | undefined {
  const { AUTH_MODE: mode, API_KEYS_FILE, JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS } = values;
  if (mode === "none") return undefined;
  const asks = (one: string) => mode.split(",").includes(one);
  const needed = { ...(asks("keys") && { API_KEYS_FILE }), ...(asks("jwt") && { JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS }) };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
  if (missing.length > 0)
    throw new ConfigError(missing.map((name) => `${name} is not set: AUTH_MODE=${mode} needs it.`));
  return {
    apiKeysFile: needed.API_KEYS_FILE,
    tokens: asks("jwt")
      ? {
          issuer: JWT_ISSUER as string,
          audience: JWT_AUDIENCE as string,
          jwks: JWT_JWKS as string,
          algorithms: values.JWT_ALGORITHMS,
        }
      : undefined,
  };
}

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
