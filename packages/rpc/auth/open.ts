/** Opens the authentication of a process. Modules for kinds of credentials that are not configured are not loaded. */
import { every, type Runtime, type WallTime } from "@petstore/runtime/clock";
import { type Authentication, type AuthenticationOptions, createAuthentication } from "./authentication.ts";
import type { TokenConfig } from "./tokens.ts";

/** The credentials that are accepted; at least one kind. */
export interface AuthConfig {
  /** The file of API keys. */
  readonly apiKeysFile: string | undefined;
  /** The issuer of access tokens. */
  readonly tokens: TokenConfig | undefined;
}

export type OpenOptions = Pick<AuthenticationOptions, "errors" | "realm"> & Runtime & WallTime;

/** Interval of rechecks, give or take a quarter: a stream outlives its credential by 15 s at most. */
const RECHECK_MS = 12_000;

/** `stack` closes it. Undefined if no credentials are required. Throws ConfigError if the configuration can't be used. */
export async function openAuthentication(
  config: AuthConfig | undefined,
  { errors, realm, ...runtime }: OpenOptions,
  stack: AsyncDisposableStack,
): Promise<Authentication | undefined> {
  if (!config) return undefined;
  const { apiKeysFile, tokens } = config;
  const openKeys = async (path: string) => (await import("./api-keys.ts")).openApiKeys(path, runtime);
  const openTokens = async (issuer: TokenConfig) =>
    (await import("./tokens.ts")).openTokens(issuer, { errors, ...runtime });
  const keys = apiKeysFile === undefined ? undefined : stack.use(await openKeys(apiKeysFile));
  const authentication = createAuthentication({
    errors,
    realm,
    apiKeys: keys?.verify,
    tokens: tokens && (await openTokens(tokens)),
  });
  keys?.onChange(() => void authentication.recheckAll());
  stack.use(every(RECHECK_MS, "credentials", authentication.recheckAll, runtime));
  return authentication;
}
