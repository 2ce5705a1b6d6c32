/** Opens what a process asks its callers by. What is not configured is not even loaded. */
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import { every } from "@petstore/runtime/workers";
import { type Authentication, type AuthenticationOptions, createAuthentication } from "./authentication.ts";
import type { TokenConfig } from "./tokens.ts";

/** What is accepted: one of them at least. */
export interface AuthConfig {
  /** The file of API keys. */
  readonly apiKeysFile: string | undefined;
  /** Whose access tokens. */
  readonly tokens: TokenConfig | undefined;
}

export type OpenOptions = Pick<AuthenticationOptions, "errors" | "realm"> & Runtime & WallTime;

/** What lasts is checked again so often, a quarter more or less: after its credential it goes on for 15 s at most. */
const RECHECK_MS = 12_000;

/** The stack closes it. Undefined when nobody is asked. Throws ConfigError when what is configured can't be used. */
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
