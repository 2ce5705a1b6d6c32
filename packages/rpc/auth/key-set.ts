/** The public keys of an issuer of tokens, which may change its keys, go away and come back. */
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";

/** No caller can make the issuer be asked more often. */
const PAUSE_MS = 60_000;
/** The same until keys were fetched for the first time: without any, nobody gets in. */
const FIRST_PAUSE_MS = 5_000;
/** Keys that are older are fetched again when one is needed, so that a key that the issuer took back ends. */
const MAX_AGE_MS = 600_000;
/** Tokens wait for that where nobody has asked for so long: it may have been days, or the machine slept. */
const LONG_MS = 2 * MAX_AGE_MS;

/** No keys have ever been fetched, so that no token can be judged. */
export class NoKeys extends Error {
  override readonly name = "NoKeys";
}

export interface KeySet {
  /** The key that a token names. Rejects with NoKeys, or with an error of jose's when there is none. */
  readonly find: JWTVerifyGetKey;
  /** Fetches the keys now. Rejects when that fails, which leaves those that are known. */
  refresh(): Promise<void>;
}

type KeySetDeps = Pick<Runtime, "log"> & WallTime;

/** `load` brings the document of keys (RFC 7517, 5), within bounds of its own. */
export function createKeySet(load: () => Promise<unknown>, { wallClock, log }: KeySetDeps): KeySet {
  let known: JWTVerifyGetKey | undefined;
  let loadedAt = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;
  let catchingUp: Promise<void> | undefined;

  const since = (instant: number) => Math.abs(wallClock() - instant); // it may be set back

  const fetchKeys = async () => {
    triedAt = wallClock();
    const keys = createLocalJWKSet((await load()) as JSONWebKeySet);
    known = keys;
    loadedAt = wallClock();
  };

  function refresh(): Promise<void> {
    loading ??= fetchKeys().finally(() => {
      loading = undefined;
    });
    return loading;
  }

  /** At once what is on its way, else no more than once in a while. Never rejects. */
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
    async find(header, token) {
      if (since(triedAt) >= LONG_MS)
        catchingUp ??= refreshIfMay().finally(() => {
          catchingUp = undefined;
        });
      else if (known && since(loadedAt) >= MAX_AGE_MS) void refreshIfMay();
      await (known ? catchingUp : refreshIfMay());
      if (!known) throw new NoKeys("no keys have been fetched yet");
      try {
        return await known(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        await refreshIfMay();
        return known(header, token);
      }
    },
  };
}
