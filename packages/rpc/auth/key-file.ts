/** The file of API keys: its schema, and its changes as pure functions. */
import { rate } from "@petstore/runtime/rate";
import * as z from "zod";
import { formatApiKey, hashOf, KEY_ID, newApiKey, newKeyId } from "./credentials.ts";

/** "books:read", "books:*", or "*" for all. */
const SCOPE = /^(\*|[a-z][a-z0-9-]*:(\*|[a-z]+))$/;

// Unknown members, which a later version may add, are kept.
const entry = z.looseObject({
  id: z.string().regex(KEY_ID, "must be 12 hexadecimal digits"),
  /** A label for people. */
  name: z.string().min(1).max(100),
  /** SHA-256 of the secret. */
  hash: z.string().regex(/^[\da-f]{64}$/, "must be 64 hexadecimal digits"),
  scopes: z.array(z.string().regex(SCOPE, 'must be a scope such as "books:read", "books:*" or "*"')).max(100),
  /** How much its holder may send through a gateway, such as "600/min", if that differs from the default. */
  rate: z
    .string()
    .refine((text) => rate.read(text) !== undefined, `must be ${rate.description}`)
    .optional(),
  /** When the key expires. Without it the key never does. */
  expires: z.iso.datetime({ offset: true }).optional(),
});
const file = z
  .looseObject({ keys: z.array(entry) })
  .refine(({ keys }) => new Set(keys.map(({ id }) => id)).size === keys.length, {
    message: "two keys have the same id",
  });

type KeyEntry = z.infer<typeof entry>;
export type KeyFile = z.infer<typeof file>;

/** The file can't be used, or the change can't be made. The message says why, and quotes no values. */
export class KeyFileError extends Error {
  override readonly name = "KeyFileError";
}

export const noKeys: KeyFile = { keys: [] };

/** Throws KeyFileError. */
export function parseKeyFile(text: string): KeyFile {
  const json = ((): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      throw new KeyFileError("it is not JSON");
    }
  })();
  const { data, error } = file.safeParse(json);
  if (data) return data;
  const [issue] = error.issues;
  throw new KeyFileError([z.core.toDotPath(issue?.path ?? []), issue?.message].filter((part) => part).join(": "));
}

export const formatKeyFile = (content: KeyFile): string => `${JSON.stringify(content, null, 2)}\n`;

/** The changed file, and the key, which must be shown to its owner now, for it is stored nowhere. */
export type Issued = { readonly content: KeyFile; readonly id: string; readonly key: string };

interface NewKey extends Pick<KeyEntry, "name" | "rate"> {
  readonly scopes: readonly string[];
  readonly expires: Date | undefined;
}

export function createKey(content: KeyFile, { name, scopes, rate, expires }: NewKey): Issued {
  const taken = new Set(content.keys.map(({ id }) => id));
  let id = newKeyId();
  while (taken.has(id)) id = newKeyId();
  const key = newApiKey(id);
  const added: KeyEntry = {
    id,
    name,
    hash: hashOf(key.secret).toString("hex"),
    scopes: [...scopes],
    ...(rate !== undefined && { rate }),
    ...(expires && { expires: expires.toISOString() }),
  };
  const changed = parseKeyFile(JSON.stringify({ ...content, keys: [...content.keys, added] }));
  return { content: changed, id, key: formatApiKey(key) };
}

/** Gives a key a new secret. Its holder stays the same caller. Throws KeyFileError. */
export function rotateKey(content: KeyFile, id: string): Issued {
  const key = newApiKey(id);
  const hash = hashOf(key.secret).toString("hex");
  return { content: change(content, id, (old) => [{ ...old, hash }]), id, key: formatApiKey(key) };
}

/** Throws KeyFileError. */
export const revokeKey = (content: KeyFile, id: string): KeyFile => change(content, id, () => []);

function change(content: KeyFile, id: string, to: (entry: KeyEntry) => KeyEntry[]): KeyFile {
  if (!content.keys.some((entry) => entry.id === id)) throw new KeyFileError("no key has this id");
  return { ...content, keys: content.keys.flatMap((entry) => (entry.id === id ? to(entry) : [entry])) };
}
