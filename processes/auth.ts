/** The settings for how external callers authenticate. */
import type { AuthConfig } from "@petstore/rpc/auth/authentication";
import { hostOfUrl, isLoopback } from "@petstore/rpc/http/address";
import {
  ConfigError,
  type Format,
  format,
  list,
  type Needs,
  oneOf,
  optional,
  path,
  text,
  type Values,
  withDefault,
} from "@petstore/runtime/environment";

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
