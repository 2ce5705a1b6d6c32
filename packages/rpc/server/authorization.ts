/** Who may call a service: the system's own processes by secret or certificate, others by credentials where required. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { isInternal } from "../auth/access.ts";
import type { Authentication } from "../auth/authentication.ts";
import { credentialsIn } from "../auth/credentials.ts";
import { ANONYMOUS, CALLER_HEADER, type Principal, SECRET_HEADER } from "../call.ts";
import type { ErrorCatalogue, RpcError } from "../errors.ts";
import { isProven } from "../http/connections.ts";

// timingSafeEqual needs equal lengths.
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Whether a request comes from one of the system's own processes, by their certificate or by their secret. */
export function isPeerRequest(
  { isTrusted }: { isTrusted(headers: Headers): boolean },
  request: IncomingMessage,
): boolean {
  if (isProven(request)) return true;
  const { [SECRET_HEADER]: secret } = request.headers;
  return typeof secret === "string" && isTrusted(new Headers({ [SECRET_HEADER]: secret }));
}

/**
 * Finds out who calls a service, and whether they may. The system's own processes know a secret that outside callers never
 * get, or have presented a certificate. Only they may call internal services, and only they may name the caller on whose
 * behalf they call.
 */
export function createAuthorization(
  secret: string | undefined,
  { rpcError, system }: ErrorCatalogue,
  authentication?: Authentication,
) {
  const expected = digest(secret ?? "");
  const isTrusted = (headers: Headers): boolean => {
    const given = headers.get(SECRET_HEADER);
    return Boolean(secret) && given !== null && timingSafeEqual(digest(given), expected);
  };
  return {
    isTrusted,
    /** Returns who calls. Throws or rejects with UNAUTHENTICATED or PERMISSION_DENIED. Pass `isPeer` if it is already known. */
    admit(method: DescMethod, headers: Headers, isPeer = isTrusted(headers)): Principal | Promise<Principal> {
      if (isPeer) return { id: headers.get(CALLER_HEADER) || ANONYMOUS.id };
      if (isInternal(method)) throw rpcError("PERMISSION_DENIED", `This RPC is for ${system}'s own services.`);
      return authentication ? authentication.admit(credentialsIn(headers), method) : ANONYMOUS;
    },
    /**
     * For an admitted call that lasts: calls `end` when it would no longer be admitted. Returns a function that stops the
     * checks. A peer is not checked, for it ends the call itself when its own caller is no longer admitted.
     */
    recheck(method: DescMethod, headers: Headers, isPeer: boolean, end: (refusal: RpcError) => void): () => void {
      return isPeer || !authentication ? () => {} : authentication.recheck(credentialsIn(headers), method, end);
    },
  };
}
