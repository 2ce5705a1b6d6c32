/** The API keys that a process accepts: those of a file, read again while it runs. */
import { timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Runtime } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import { rate } from "@petstore/runtime/rate";
import { every } from "@petstore/runtime/workers";
import { hashOf, parseApiKey } from "./api-key.ts";
import type { Identity, Verify } from "./authentication.ts";
import { InvalidCredential } from "./credentials.ts";
import { type KeyFile, parseKeyFile } from "./key-file.ts";

/** How often the file is looked at, a quarter more at most: a change counts within a second. */
const LOOK_MS = 500;

interface Accepted {
  readonly hash: Buffer;
  /** On the clock; infinite for a key without an end. */
  readonly expiresAt: number;
  readonly identity: Identity;
}

export interface ApiKeys extends AsyncDisposable {
  readonly verify: Verify;
  /** Reads the file again, as happens by itself. Never rejects. */
  reload(): Promise<void>;
}

/** Opens a file of keys. A file that breaks later leaves those accepted that it held before. Throws ConfigError. */
export async function openApiKeys(
  path: string,
  { clock, log, ...time }: Pick<Runtime, "clock" | "log" | "sleep" | "random">,
): Promise<ApiKeys> {
  let text: string | undefined;
  let problem: string | undefined;
  let accepted: ReadonlyMap<string, Accepted> = new Map();

  async function read(): Promise<void> {
    const found = await readFile(path, "utf8");
    if (found === text) return;
    accepted = acceptedFrom(parseKeyFile(found));
    text = found;
  }

  async function reload(): Promise<void> {
    const before = text;
    try {
      await read();
      if (text !== before || problem !== undefined)
        log.info({ path, keys: accepted.size }, "the API keys were read again");
      problem = undefined;
    } catch (err) {
      const found = problemOf(err);
      if (found !== problem)
        log.error(
          { path, problem: found },
          "the file of API keys can't be used: those that it held before stay accepted",
        );
      problem = found;
    }
  }

  await read().catch((err) => {
    throw new ConfigError([`API_KEYS_FILE=${path} can't be used: ${problemOf(err)}. \`npm run keys\` writes one.`]);
  });
  const watch = every(LOOK_MS, "api-keys", reload, { log, ...time });
  return {
    verify(given) {
      const { id, secret } = parseApiKey(given);
      const key = accepted.get(id);
      const isIt = timingSafeEqual(hashOf(secret), key?.hash ?? NO_HASH);
      if (!key || !isIt)
        throw new InvalidCredential("The API key is not known here: perhaps it was revoked or rotated.");
      if (key.expiresAt <= clock()) throw new InvalidCredential("The API key has expired.");
      return key.identity;
    },
    reload,
    [Symbol.asyncDispose]: () => watch[Symbol.asyncDispose](),
  };
}

/** Of no secret. */
const NO_HASH = Buffer.alloc(32);

const acceptedFrom = ({ keys }: KeyFile): ReadonlyMap<string, Accepted> =>
  new Map(
    keys.map(({ id, hash, scopes, rate: own, expires }) => [
      id,
      {
        hash: Buffer.from(hash, "hex"),
        expiresAt: expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires),
        identity: {
          id: `key:${id}`,
          scopes: new Set(scopes),
          ...(own !== undefined && { rate: rate.read(own) }),
        },
      },
    ]),
  );

function problemOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? "there is no such file" : (code ?? message);
}
