/** Authenticates and authorizes outside callers, in the same way at every endpoint and in every protocol. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { every, type Runtime, type WallTime } from "@petstore/runtime/clock";
import { scope as scopeOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { ANONYMOUS, type Principal } from "../call.ts";
import { type ErrorCatalogue, RpcError } from "../errors.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { Health } from "../gen/health/v1/health_pb.ts";
import { type Credential, type Credentials, credentialFrom, InvalidCredential, isApiKey } from "./credentials.ts";
import type { TokenConfig } from "./tokens.ts";

/**
 * What a caller needs to call a method, as the contract declares it: to be one of the system's own processes, nothing at all,
 * any valid credential, or one that was granted a scope. Nobody may call a method that declares nothing.
 */
type Access = "internal" | "open" | "authenticated" | "nobody" | { readonly scope: string };

// Contracts of third parties, whose methods can't declare a scope.
const byService = new Map<string, Access>([
  [Health.typeName, "open"],
  [ServerReflection.typeName, "authenticated"],
  [ServerReflectionAlpha.typeName, "authenticated"],
]);

/** Services of a proto package with this part in its name, such as "library.internal.v1", are internal. */
export const isInternal = ({ parent }: DescMethod): boolean =>
  parent.file.proto.package.split(".").includes("internal");

function accessOf(method: DescMethod): Access {
  if (isInternal(method)) return "internal";
  const scope = getOption(method, scopeOption);
  return byService.get(method.parent.typeName) ?? (scope === "" ? "nobody" : { scope });
}

/** Whether the granted scopes include one: as "books:read" itself, "books:*", or "*" for everything. */
export const grants = (granted: ReadonlySet<string>, scope: string): boolean =>
  granted.has(scope) || granted.has("*") || granted.has(scope.replace(/:.*/, ":*"));

/** The holder of a credential, and the scopes granted to it. */
export interface Identity extends Principal {
  readonly scopes: ReadonlySet<string>;
}

/** Finds the holder of a credential. Throws InvalidCredential, or an RpcError if the credential can't be verified now. */
export type Verify = (text: string) => Identity | Promise<Identity>;

export type Authentication = ReturnType<typeof createAuthentication>;

interface AuthenticationOptions {
  readonly errors: ErrorCatalogue;
  /** The realm in the `WWW-Authenticate` challenge, such as "library". */
  readonly realm: string;
  /** The kinds of credentials that are accepted; at least one. */
  readonly apiKeys?: Verify | undefined;
  readonly tokens?: Verify | undefined;
}

export function createAuthentication({ errors, realm, apiKeys, tokens }: AuthenticationOptions) {
  const accesses = new WeakMap<DescMethod, Access>();
  const needs = (method: DescMethod): Access => {
    const access = accesses.get(method) ?? accessOf(method);
    accesses.set(method, access);
    return access;
  };

  function refusal(reason: "UNAUTHENTICATED" | "PERMISSION_DENIED", message: string, error = ""): RpcError {
    const refused = errors.rpcError(reason, message);
    refused.metadata.set("www-authenticate", `Bearer realm="${realm}"${error}`);
    return refused;
  }
  const denied = (message: string, scope?: string) => {
    const lacking = scope === undefined ? "" : `, scope="${scope}"`;
    return refusal("PERMISSION_DENIED", message, `, error="insufficient_scope"${lacking}`);
  };

  const accepted = [...(apiKeys ? ["an API key"] : []), ...(tokens ? ["an access token"] : [])].join(" or ");
  const missing = `Credentials are needed: send ${accepted} as Authorization: Bearer <credential>.`;

  async function identify(credentials: Credentials): Promise<Identity> {
    try {
      const given = credentialFrom(credentials);
      if (!given) throw refusal("UNAUTHENTICATED", missing);
      const verify = isForKeys(given) ? apiKeys : tokens;
      if (!verify) throw new InvalidCredential(`What is accepted here is ${accepted}.`);
      return await verify(given.text);
    } catch (thrown) {
      throw thrown instanceof InvalidCredential
        ? refusal("UNAUTHENTICATED", thrown.message, ', error="invalid_token"')
        : thrown;
    }
  }

  function allow({ scopes }: Identity, access: Access): void {
    if (access === "nobody" || access === "internal") throw denied("Nobody may call this from outside.");
    if (typeof access === "object" && !grants(scopes, access.scope))
      throw denied(`This needs the scope ${access.scope}, which the credential was not granted.`, access.scope);
  }

  /**
   * Returns the caller, if it may call the method. Rejects with UNAUTHENTICATED, or with PERMISSION_DENIED if the scope is
   * missing; the error's header `WWW-Authenticate` tells which (RFC 6750, 3). `known` is called as soon as the caller is
   * known; an error that it throws is passed on. `also` are more methods that the caller must be allowed to call.
   */
  async function admit(
    credentials: Credentials,
    method: DescMethod,
    known?: (caller: Principal) => void,
    also: readonly DescMethod[] = [],
  ): Promise<Principal> {
    const access = needs(method);
    if (access === "open") return ANONYMOUS;
    const identity = await identify(credentials);
    known?.(identity);
    allow(identity, access);
    for (const other of also) allow(identity, needs(other));
    return identity;
  }

  const lasting = new Set<{ readonly admitted: () => Promise<unknown>; readonly end: (refusal: RpcError) => void }>();

  return {
    admit,
    /**
     * For an admitted call that lasts, such as a stream: checks it again whenever `recheckAll` is called. Calls `end` once, with
     * the first refusal. Returns a function that stops the checks.
     */
    recheck(
      credentials: Credentials,
      method: DescMethod,
      end: (refusal: RpcError) => void,
      also?: readonly DescMethod[],
    ): () => void {
      const one = { admitted: () => admit(credentials, method, undefined, also), end };
      lasting.add(one);
      return () => void lasting.delete(one);
    },
    /** Checks all lasting calls again. Never rejects: a credential that can't be verified now ends no call. */
    async recheckAll(): Promise<void> {
      // One after the other, because verifying a signature takes a while, and requests are waiting.
      for (const one of [...lasting]) {
        const refused = lasting.has(one) && (await one.admitted().then(() => undefined, refusalIn));
        if (refused && lasting.delete(one)) one.end(refused);
      }
    },
  };
}

const isForKeys = ({ field, text }: Credential) => field === "x-api-key" || isApiKey(text);

/** The access token in credentials, which takes a signature check; undefined if there is none. */
export function accessTokenIn(credentials: Credentials): string | undefined {
  try {
    const given = credentialFrom(credentials);
    return given && !isForKeys(given) ? given.text : undefined;
  } catch {
    return undefined;
  }
}

const refusalIn = (thrown: unknown): RpcError | undefined =>
  thrown instanceof RpcError && thrown.code !== Code.Unavailable ? thrown : undefined;

/** The credentials that are accepted; at least one kind. */
export interface AuthConfig {
  readonly apiKeysFile: string | undefined;
  readonly tokens: TokenConfig | undefined;
}

/** Interval of rechecks, give or take a quarter: a stream outlives its credential by 15 s at most. */
const RECHECK_MS = 12_000;

/**
 * Opens the authentication of a process. Modules for kinds of credentials that are not configured are not loaded. `stack` closes
 * it. Undefined if no credentials are required. Throws ConfigError if the configuration can't be used.
 */
export async function openAuthentication(
  config: AuthConfig | undefined,
  { errors, realm, ...runtime }: Pick<AuthenticationOptions, "errors" | "realm"> & Runtime & WallTime,
  stack: AsyncDisposableStack,
): Promise<Authentication | undefined> {
  if (!config) return undefined;
  const { apiKeysFile, tokens } = config;
  const openKeys = async (path: string) => (await import("./api-keys.ts")).openApiKeys(path, runtime);
  const openTokens = async (issuer: TokenConfig) =>
    (await import("./tokens.ts")).openTokens(issuer, { errors, ...runtime });
  const keys = apiKeysFile === undefined ? undefined : stack.use(await openKeys(apiKeysFile));
  const verify = { apiKeys: keys?.verify, tokens: tokens && (await openTokens(tokens)) };
  const authentication = createAuthentication({ errors, realm, ...verify });
  keys?.onChange(() => void authentication.recheckAll());
  stack.use(every(RECHECK_MS, "credentials", authentication.recheckAll, runtime));
  return authentication;
}
