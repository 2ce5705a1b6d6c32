/** Credentials as HTTP carries them (RFC 9110, 11.6.2; RFC 6750, 2.1), and API keys as callers hold them. */
import { createHash, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { crc32 } from "node:zlib";

/** The header for API keys, as an alternative to `Authorization: Bearer`. */
const API_KEY_HEADER = "x-api-key";

/** The two header fields as received. A repeated field holds all its values, so it is not a valid credential. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly apiKey: string | undefined;
}

export type Credential = { readonly field: "authorization" | "x-api-key"; readonly text: string };

/** Longest credential that is accepted, in characters. */
const MAX_LENGTH = 8 * 1024;

/** A credential is malformed, unknown or no longer valid. The message is public, and never quotes the credential. */
export class InvalidCredential extends Error {
  override readonly name = "InvalidCredential";
}

/** The credentials in a call's headers. These hold all values of a field if `keepRepeated` was called for the request. */
export const credentialsIn = (headers: Headers): Credentials => ({
  authorization: headers.get("authorization") ?? undefined,
  apiKey: headers.get(API_KEY_HEADER) ?? undefined,
});

/** The credentials in an HTTP request. */
export function credentialsOf(request: IncomingMessage): Credentials {
  keepRepeated(request);
  const { authorization, [API_KEY_HEADER]: apiKey } = request.headers as Record<string, string | undefined>;
  return { authorization, apiKey };
}

/** Joins repeated `Authorization` fields. Node keeps only the first, and the caller must not be authenticated by that one. */
export function keepRepeated({ headers, rawHeaders }: Pick<IncomingMessage, "headers" | "rawHeaders">): void {
  const all = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === "authorization");
  if (all.length > 1) (headers as IncomingHttpHeaders).authorization = all.join(", ");
}

/** The one credential that was sent; undefined if there is none. Throws InvalidCredential. */
export function credentialFrom({ authorization, apiKey }: Credentials): Credential | undefined {
  if (authorization === undefined && apiKey === undefined) return undefined;
  if (authorization !== undefined && apiKey !== undefined)
    throw new InvalidCredential("Send one credential: either Authorization or X-API-Key.");
  const given = authorization ?? apiKey ?? "";
  if (given.length > MAX_LENGTH) throw new InvalidCredential(`A credential has ${MAX_LENGTH} characters at most.`);
  if (apiKey !== undefined) return { field: API_KEY_HEADER, text: apiKey };
  const [, text] = /^bearer +([\w.~+/-]+=*)$/i.exec(given) ?? [];
  if (text === undefined)
    throw new InvalidCredential("Authorization takes one credential, written: Bearer <credential>.");
  return { field: "authorization", text };
}

const PREFIX = "psk_";

/**
 * An API key, written `psk_<id>_<secret>`, where the last eight hexadecimal digits are a CRC-32 of all before them. The checksum
 * tells a typo from an unknown key, and lets secret scanners recognise a committed key.
 */
interface ApiKey {
  /** Identifies the key, in logs for example. It is no secret. */
  readonly id: string;
  readonly secret: string;
}

export const KEY_ID = /^[\da-f]{12}$/;

export const isApiKey = (text: string): boolean => text.startsWith(PREFIX);

export const newKeyId = (): string => randomBytes(6).toString("hex");
/** A key with a new secret of 256 random bits. */
export const newApiKey = (id = newKeyId()): ApiKey => ({ id, secret: randomBytes(32).toString("hex") });

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
