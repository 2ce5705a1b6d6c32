/** The public keys of a token issuer, which may rotate its keys, and be unreachable for a while. */
import { get as getHttp, type RequestOptions } from "node:http";
import { get as getHttps } from "node:https";
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import { problemOf, readText } from "@petstore/runtime/watched-files";
import {
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";

/** Shortest interval between fetches, whatever tokens callers send. */
const PAUSE_MS = 60_000;
/** The same until keys were fetched for the first time: without keys no token is accepted. */
const FIRST_PAUSE_MS = 5_000;
/** Older keys are fetched again when one is needed, so that a key that the issuer withdraws stops being accepted. */
const MAX_AGE_MS = 600_000;
/** If the last fetch was longer ago, tokens wait for a new one: it may have been days, or the machine slept. */
const LONG_MS = 2 * MAX_AGE_MS;

/** How many keys are tried for one token: an issuer that gives no `kid` has one or two, and a forger pays nothing for each. */
const MAX_CANDIDATES = 10;

/** No keys have been fetched yet, so no token can be verified. */
export class NoKeys extends Error {
  override readonly name = "NoKeys";
}

/** `load` fetches the JWK Set (RFC 7517, 5), and limits its own time and size. */
export function createKeySet(load: () => Promise<unknown>, { wallClock, log }: Pick<Runtime, "log"> & WallTime) {
  let known: JWTVerifyGetKey | undefined;
  let loadedAt = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;
  let catchingUp: Promise<void> | undefined;

  const since = (instant: number) => Math.abs(wallClock() - instant); // the wall clock may be set back

  const fetchKeys = async () => {
    triedAt = wallClock();
    const keys = createLocalJWKSet((await load()) as JSONWebKeySet);
    known = keys;
    loadedAt = wallClock();
  };

  /** Fetches the keys now. Rejects if that fails; the keys that are known stay accepted. */
  function refresh(): Promise<void> {
    loading ??= fetchKeys().finally(() => {
      loading = undefined;
    });
    return loading;
  }

  /** Waits for a fetch under way, or begins one if the last was long enough ago. Never rejects. */
  async function refreshIfMay(): Promise<void> {
    if (loading === undefined && since(triedAt) < (known ? PAUSE_MS : FIRST_PAUSE_MS)) return;
    const isFirst = loading === undefined;
    await refresh().catch((err) => {
      const meanwhile = known ? "those that are known stay accepted" : "no token is accepted";
      if (isFirst) log.warn({ err }, `the keys of the issuer can't be fetched: ${meanwhile}`);
    });
  }

  return {
    refresh,
    /** Verifies a token with the key that it names, or with each that fits it. Rejects with NoKeys, or with an error of jose's. */
    async verify(token: string, options: JWTVerifyOptions): Promise<JWTPayload> {
      if (since(triedAt) >= LONG_MS)
        catchingUp ??= refreshIfMay().finally(() => {
          catchingUp = undefined;
        });
      else if (known && since(loadedAt) >= MAX_AGE_MS) void refreshIfMay();
      await (known ? catchingUp : refreshIfMay());
      if (!known) throw new NoKeys("no keys have been fetched yet");
      const tried = known;
      try {
        return await verifyWith(tried, token, options);
      } catch (error) {
        // The issuer may have a new key, which a token without `kid` does not name.
        if (!(error instanceof errors.JWKSNoMatchingKey || isForAnotherKey(error))) throw error;
        await refreshIfMay();
        if (known === tried) throw error;
        return verifyWith(known, token, options);
      }
    },
  };
}

const isForAnotherKey = (error: unknown) => error instanceof errors.JWSSignatureVerificationFailed;

/** Tries each key that fits (RFC 7515, appendix D). An issuer's key that can't be used fits no token. */
async function verifyWith(find: JWTVerifyGetKey, token: string, options: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, find, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw new errors.JWKInvalid("it can't be used", { cause: error });
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let left = MAX_CANDIDATES;
    for await (const key of error) {
      if (left-- === 0) break;
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (failure) {
        if (failure instanceof errors.JOSEError && !isForAnotherKey(failure)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

const MAX_BYTES = 256 * 1024;
const TIMEOUT_MS = 5_000;

export const isAddress = (location: string): boolean => /^https?:\/\//.test(location);

/**
 * The JSON document at an address, or in a file. Rejects if it is missing or not JSON, and at an address if it has more than
 * 256 KiB or takes more than 5 s. The message quotes neither the path nor the content.
 */
export async function fetchKeys(location: string): Promise<unknown> {
  const text = await (isAddress(location) ? download(new URL(location)) : read(location));
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
}

const read = (path: string): Promise<string> =>
  readText(path).catch((error) => {
    throw new Error(problemOf(error, [path]));
  });

/** Follows no redirects: the keys must be at the configured address. */
function download(url: URL): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  // The default, but NODE_TLS_REJECT_UNAUTHORIZED can't switch it off.
  const options: RequestOptions & { rejectUnauthorized: boolean } = {
    headers: { accept: "application/jwk-set+json, application/json" },
    rejectUnauthorized: true,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  };
  const request = (url.protocol === "https:" ? getHttps : getHttp)(url, options, (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    if (response.statusCode !== 200) request.destroy(new Error(`the issuer's keys: HTTP ${response.statusCode}`));
    response.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) request.destroy(new Error(`the issuer's keys have more than ${MAX_BYTES} bytes`));
      else chunks.push(chunk);
    });
    response.on("end", () => resolve(new TextDecoder().decode(Buffer.concat(chunks))));
    response.on("error", reject);
  });
  request.on("error", reject);
  return promise;
}
