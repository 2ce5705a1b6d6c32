/**
 * API keys as callers hold them: `psk_<id>_<secret>`, where the last eight hexadecimal digits are a CRC-32 of all before
 * them. The checksum tells a typo from an unknown key, and lets secret scanners recognise a committed key.
 */
import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { InvalidCredential } from "./credentials.ts";

const PREFIX = "psk_";
const ID_BYTES = 6;
const SECRET_BYTES = 32;

export interface ApiKey {
  /** Identifies the key, in logs for example. It is no secret. */
  readonly id: string;
  readonly secret: string;
}

export const KEY_ID = /^[\da-f]{12}$/;

export const isApiKey = (text: string): boolean => text.startsWith(PREFIX);

export const newKeyId = (): string => randomBytes(ID_BYTES).toString("hex");
/** A key with a new secret of 256 random bits. */
export const newApiKey = (id = newKeyId()): ApiKey => ({ id, secret: randomBytes(SECRET_BYTES).toString("hex") });

export function formatApiKey({ id, secret }: ApiKey): string {
  const text = `${PREFIX}${id}_${secret}`;
  return text + checksum(text);
}

/** Throws InvalidCredential. */
export function parseApiKey(text: string): ApiKey {
  const [, all = "", id, secret, sum] = /^(psk_([\da-f]{12})_([\da-f]{64}))([\da-f]{8})$/.exec(text) ?? [];
  if (id === undefined || secret === undefined)
    throw new InvalidCredential("The API key is not complete: keys look like psk_<id>_<secret>.");
  if (sum !== checksum(all)) throw new InvalidCredential("The API key is mistyped: its checksum does not fit.");
  return { id, secret };
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, "0");

/** The only form in which a secret is stored. SHA-256 suffices, for 256 random bits can't be searched. */
export const hashOf = (secret: string): Buffer => createHash("sha256").update(secret).digest();
