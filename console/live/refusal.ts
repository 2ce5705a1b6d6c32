/** Answers by which the petstore refuses a stream, apart from those of whoever stands before it. */
import type { Kind } from "../records/changes.ts";
import { kinds, readScopes } from "./state.ts";

/** Why there is no stream. */
export class Refusal extends Error {
  readonly code: string;
  /** How long the petstore asks to wait. */
  readonly retryAfterMs: number;
  /** The records that the caller may not read, where it is for these. */
  readonly denied: Kind | undefined;
  constructor(code: string, message: string, retryAfterMs = 0, denied?: Kind) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.denied = denied;
  }
}

/** An Error that is no Refusal for an answer that is none of the petstore's, such as that of a proxy that does not reach it. */
export async function refusalOf(response: Response): Promise<Error> {
  const record = (await response.json().catch(() => ({}))) as {
    readonly code?: string;
    readonly message?: string;
  } | null;
  if (typeof record?.code !== "string") return new Error(`no petstore answers: ${response.status}`);
  const retryAfterMs = (Number(response.headers.get("retry-after")) || 0) * 1_000;
  // RFC 6750, 3: the scope that is missing.
  const [, scope] = / scope="([^"]*)"/.exec(response.headers.get("www-authenticate") ?? "") ?? [];
  const missing = kinds.find((kind) => readScopes[kind] === scope);
  return new Refusal(record.code, record.message ?? "", retryAfterMs, missing);
}
