/** The public keys of a token issuer, which may rotate its keys, and be unreachable for a while. */
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";

/** Shortest interval between fetches, whatever tokens callers send. */
const PAUSE_MS = 60_000;
/** The same until keys were fetched for the first time: without keys no token is accepted. */
const FIRST_PAUSE_MS = 5_000;
/** Older keys are fetched again when one is needed, so that a key that the issuer withdraws stops being accepted. */
const MAX_AGE_MS = 600_000;
/** If the last fetch was longer ago, tokens wait for a new one: it may have been days, or the machine slept. */
const LONG_MS = 2 * MAX_AGE_MS;

/** No keys have been fetched yet, so no token can be verified. */
export class NoKeys extends Error {
  override readonly name = "NoKeys";
}

export interface KeySet {
  /** The key that a token names. Rejects with NoKeys, or with an error of jose's if there is no such key. */
  readonly find: JWTVerifyGetKey;
  /** Fetches the keys now. Rejects if that fails; the keys that are known stay accepted. */
  refresh(): Promise<void>;
}

type KeySetDeps = Pick<Runtime, "log"> & WallTime;

/** `load` fetches the JWK Set (RFC 7517, 5), and limits its own time and size. */
export function createKeySet(load: () => Promise<unknown>, { wallClock, log }: KeySetDeps): KeySet {
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
