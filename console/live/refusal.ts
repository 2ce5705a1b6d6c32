/** Refusals of a stream: the petstore's, and those of proxies before it. */
import type { Kind } from "../records/changes.ts";
import { kinds, readScopes } from "./state.ts";

export class Refusal extends Error {
  /** Empty if another server answered, such as a proxy that does not reach the petstore. */
  readonly code: string;
  /** How long the server asks to wait. */
  readonly retryAfterMs: number;
  /** The kind of records that the caller may not read, if that is the reason. */
  readonly denied: Kind | undefined;
  constructor(code: string, message: string, retryAfterMs = 0, denied?: Kind) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.denied = denied;
  }
}

/** The longest pause that a server may ask for: people are looking at the page. */
const MAX_RETRY_AFTER_S = 600;

export async function refusalOf(response: Response): Promise<Refusal> {
  const record = (await response.json().catch(() => ({}))) as {
    readonly code?: string;
    readonly message?: string;
  } | null;
  const retryAfterMs = Math.min(Number(response.headers.get("retry-after")) || 0, MAX_RETRY_AFTER_S) * 1_000;
  if (typeof record?.code !== "string") return new Refusal("", `no petstore answers: ${response.status}`, retryAfterMs);
  // RFC 6750, 3: the scope that is missing.
  const [, scope] = / scope="([^"]*)"/.exec(response.headers.get("www-authenticate") ?? "") ?? [];
  const missing = kinds.find((kind) => readScopes[kind] === scope);
  return new Refusal(record.code, record.message ?? "", retryAfterMs, missing);
}
