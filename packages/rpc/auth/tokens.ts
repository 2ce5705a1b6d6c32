/** Access tokens of an issuer: JSON Web Tokens as in RFC 9068, verified by the best practices of RFC 8725. */
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import { type JWTPayload, errors as joseErrors } from "jose";
import type { ErrorCatalogue } from "../errors.ts";
import type { Identity, Verify } from "./authentication.ts";
import { InvalidCredential } from "./credentials.ts";
import { createKeySet, fetchKeys, isAddress, NoKeys } from "./key-set.ts";

/** How far the issuer's clock may be from ours. */
const LEEWAY_S = 60;
/** OpenID Connect's limit for a subject. */
const MAX_SUBJECT_LENGTH = 255;

export interface TokenConfig {
  /** The value of the claim `iss`. */
  readonly issuer: string;
  /** The system's name in the claim `aud`. */
  readonly audience: string;
  /** The address or the file of the issuer's keys. */
  readonly jwks: string;
  /** Names of signature algorithms (RFC 7518), all of them asymmetric. */
  readonly algorithms: readonly string[];
}

/** Opens the issuer's keys: reads a file, or begins to fetch an address without waiting. Throws ConfigError for a bad file. */
export async function openTokens(
  { issuer, audience, jwks, algorithms }: TokenConfig,
  { wallClock, errors, log }: Pick<Runtime, "log"> & WallTime & { readonly errors: ErrorCatalogue },
): Promise<Verify> {
  const keys = createKeySet(() => fetchKeys(jwks), { wallClock, log });
  const opened = keys.refresh();
  if (isAddress(jwks))
    opened.catch((err) => log.warn({ err }, "the keys of the issuer can't be fetched: no token is accepted"));
  else
    await opened.catch((error: Error) => {
      throw new ConfigError([`JWT_JWKS can't be used: ${error.message}.`]);
    });
  const countRefusal = createRefusalLog({ wallClock, log });
  const options = {
    issuer,
    audience,
    algorithms: [...algorithms],
    typ: "at+jwt", // refuses ID tokens and other tokens of the same issuer
    requiredClaims: ["exp", "sub"],
    clockTolerance: LEEWAY_S,
  };
  return async (token) => {
    try {
      return identityOf(await keys.verify(token, { ...options, currentDate: new Date(wallClock()) }));
    } catch (error) {
      if (error instanceof NoKeys)
        throw errors.rpcError(
          "UNAVAILABLE",
          "The keys to verify access tokens with can't be fetched now. Try again.",
          error,
        );
      const refusal = error instanceof joseErrors.JOSEError ? new InvalidCredential(sentenceOf(error)) : error;
      if (refusal instanceof InvalidCredential)
        countRefusal(REASONS.get((error as joseErrors.JOSEError).code) ?? refusal.message);
      throw refusal;
    }
  };
}

/** The least time between two lines of the log for the same reason, in milliseconds: who sends tokens decides how many there are. */
const LOG_EVERY_MS = 60_000;

/** Returns a function that counts a refusal, and logs the first for a reason at once and later ones together. */
function createRefusalLog({ wallClock, log }: Pick<Runtime, "log"> & WallTime): (reason: string) => void {
  const reasons = new Map<string, { readonly loggedAt: number; refused: number }>();
  return (reason) => {
    const now = wallClock();
    const known = reasons.get(reason);
    if (known && Math.abs(now - known.loggedAt) < LOG_EVERY_MS) known.refused++;
    else {
      log.warn({ reason, refused: (known?.refused ?? 0) + 1 }, "access tokens were refused");
      reasons.set(reason, { loggedAt: now, refused: 0 });
    }
  };
}

/** For the log, where the answer does not say why. An error's own message may quote the token. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ["ERR_JWKS_NO_MATCHING_KEY", "The issuer has published no key with its kid and its algorithm."],
  ["ERR_JWS_SIGNATURE_VERIFICATION_FAILED", "None of the issuer's keys that fit it has signed it."],
  ["ERR_JWK_INVALID", "The issuer's key for it can't be used."],
  ["ERR_JOSE_ALG_NOT_ALLOWED", "Its algorithm is not one of JWT_ALGORITHMS."],
  ["ERR_JWKS_INVALID", "The issuer's key for it can't be used."],
  ["ERR_JOSE_NOT_SUPPORTED", "It needs an algorithm or an extension that is not supported."],
  ["ERR_JWS_INVALID", "It is no signed JSON Web Token."],
  ["ERR_JWT_INVALID", "It is no signed JSON Web Token."],
]);

function sentenceOf(error: joseErrors.JOSEError): string {
  if (error instanceof joseErrors.JWTExpired) return "The access token has expired.";
  if (error instanceof joseErrors.JWTClaimValidationFailed)
    return `The access token does not count here: its "${error.claim}" is missing, or is not what is accepted.`;
  return "The access token can't be verified.";
}

function identityOf({ sub, scope, scp }: JWTPayload): Identity {
  // The issuer decides what a token contains, whatever the types say.
  if (typeof sub !== "string" || sub === "" || sub.length > MAX_SUBJECT_LENGTH || !sub.isWellFormed())
    throw new InvalidCredential(
      `The access token does not count here: its "sub" has 1 to ${MAX_SUBJECT_LENGTH} characters.`,
    );
  return { id: `sub:${encodeURIComponent(sub)}`, scopes: new Set(scopesIn(scope ?? scp)) };
}

/** RFC 9068 has one string with spaces; other issuers send a list. */
const scopesIn = (granted: unknown): string[] =>
  (typeof granted === "string" ? granted.split(" ") : Array.isArray(granted) ? granted : []).filter(
    (scope) => typeof scope === "string" && scope !== "",
  );
