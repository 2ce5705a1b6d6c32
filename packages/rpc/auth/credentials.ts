/** What a caller shows to say who it is, as HTTP carries it (RFC 9110, 11.6.2; RFC 6750, 2.1). */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

/** The header that takes API keys, beside `Authorization: Bearer`. */
const API_KEY_HEADER = "x-api-key";

/** The two fields as they came. One that came twice holds both values, so it is no credential. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly apiKey: string | undefined;
}

/** Longest credential that is looked at, in characters. */
const MAX_LENGTH = 8 * 1024;

/** What was shown can't be a valid credential, or is none any more. The message is public, and never quotes it. */
export class InvalidCredential extends Error {
  override readonly name = "InvalidCredential";
}

/** Of a call's headers, which hold all values of a field if `keepRepeated` saw the request. */
export const credentialsIn = (headers: Headers): Credentials => ({
  authorization: headers.get("authorization") ?? undefined,
  apiKey: headers.get(API_KEY_HEADER) ?? undefined,
});

/** Of an HTTP request. */
export function credentialsOf(request: IncomingMessage): Credentials {
  keepRepeated(request);
  const { authorization, [API_KEY_HEADER]: apiKey } = request.headers as Record<string, string | undefined>;
  return { authorization, apiKey };
}

/** Of several `Authorization` fields Node keeps the first. A caller must not be taken for whom that one names. */
export function keepRepeated({ headers, rawHeaders }: Pick<IncomingMessage, "headers" | "rawHeaders">): void {
  const all = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === "authorization");
  if (all.length > 1) (headers as IncomingHttpHeaders).authorization = all.join(", ");
}

/** The one credential that was shown; undefined without any. Throws InvalidCredential. */
export function credentialFrom({
  authorization,
  apiKey,
}: Credentials): { readonly field: "authorization" | "x-api-key"; readonly text: string } | undefined {
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
