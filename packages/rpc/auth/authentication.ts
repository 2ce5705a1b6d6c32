/** Authenticates and authorizes outside callers, in the same way at every endpoint and in every protocol. */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { ANONYMOUS, type Principal } from "../call.ts";
import { type ErrorCatalogue, RpcError } from "../errors.ts";
import { type Access, accessOf, grants } from "./access.ts";
import { isApiKey } from "./api-key.ts";
import { type Credential, type Credentials, credentialFrom, InvalidCredential } from "./credentials.ts";

/** The holder of a credential, and the scopes granted to it. */
export interface Identity extends Principal {
  readonly scopes: ReadonlySet<string>;
}

/** Finds the holder of a credential. Throws InvalidCredential, or an RpcError if the credential can't be verified now. */
export type Verify = (text: string) => Identity | Promise<Identity>;

export type Authentication = ReturnType<typeof createAuthentication>;

export interface AuthenticationOptions {
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
  const denied = (message: string, scope?: string) =>
    refusal(
      "PERMISSION_DENIED",
      message,
      `, error="insufficient_scope"${scope === undefined ? "" : `, scope="${scope}"`}`,
    );

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
    if (access.kind === "scope" && !grants(scopes, access.scope))
      throw denied(`This needs the scope ${access.scope}, which the credential was not granted.`, access.scope);
    if (access.kind === "nobody" || access.kind === "internal") throw denied("Nobody may call this from outside.");
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
    if (access.kind === "open") return ANONYMOUS;
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
