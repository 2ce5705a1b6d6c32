/** The API keys that a process accepts: those of a file, which is read again when it changes. */
import { timingSafeEqual } from "node:crypto";
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import { rate } from "@petstore/runtime/rate";
import { problemOf, watchFiles } from "@petstore/runtime/watched-files";
import type { Identity } from "./authentication.ts";
import { hashOf, InvalidCredential, parseApiKey } from "./credentials.ts";
import { type KeyFile, parseKeyFile } from "./key-file.ts";

interface Accepted {
  readonly hash: Buffer;
  /** Milliseconds since 1970; infinite for a key that does not expire. */
  readonly expiresAt: number;
  readonly identity: Identity;
}

/** Opens a file of keys. If it becomes invalid later, the keys read before stay accepted. Throws ConfigError. */
export async function openApiKeys(
  path: string,
  { wallClock, log, ...time }: Pick<Runtime, "log" | "sleep" | "random"> & WallTime,
) {
  const file = await watchFiles([path], {
    name: "api-keys",
    parse: ([text = ""]) => acceptedFrom(parseKeyFile(text)),
    describe: ({ size: keys }) => ({ keys }),
    said: {
      again: "the API keys were read again",
      unusable: "the file of API keys can't be used: those that it held before stay accepted",
    },
    log,
    ...time,
  }).catch((err) => {
    const problem = problemOf(err, [path]);
    throw new ConfigError([`API_KEYS_FILE can't be used: ${problem}. \`npm run keys\` writes one.`]);
  });
  return {
    ...file,
    verify(given: string): Identity {
      const { id, secret } = parseApiKey(given);
      const key = file.current().get(id);
      const isIt = timingSafeEqual(hashOf(secret), key?.hash ?? NO_HASH);
      if (!key || !isIt)
        throw new InvalidCredential("The API key is not known here: perhaps it was revoked or rotated.");
      if (key.expiresAt <= wallClock()) throw new InvalidCredential("The API key has expired.");
      return key.identity;
    },
  };
}

/** The hash of no secret, to compare with when a key is unknown. */
const NO_HASH = Buffer.alloc(32);

const acceptedFrom = ({ keys }: KeyFile): ReadonlyMap<string, Accepted> =>
  new Map(
    keys.map(({ id, hash, scopes, rate: own, expires }) => [
      id,
      {
        hash: Buffer.from(hash, "hex"),
        expiresAt: expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires),
        identity: { id: `key:${id}`, scopes: new Set(scopes), ...(own !== undefined && { rate: rate.read(own) }) },
      },
    ]),
  );
