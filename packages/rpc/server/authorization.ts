/** Who may call a service: the system's own processes by their secret, everybody else by credentials where these are asked for. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { isInternal } from "../auth/access.ts";
import type { Authentication } from "../auth/authentication.ts";
import { credentialsIn } from "../auth/credentials.ts";
import { ANONYMOUS, CALLER_HEADER, type Principal, SECRET_HEADER } from "../call.ts";
import type { ErrorCatalogue, RpcError } from "../errors/catalogue.ts";
import { isProven } from "../http/connections.ts";

// Equal lengths for timingSafeEqual, whatever was sent.
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
 * Who calls a service, if they may. The system's own processes know a secret that no caller from outside is told, or have
 * shown a certificate: internal services are for them alone, and they alone are believed when they name the caller that they
 * speak for.
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
    /** `isPeer` where it is known already. Throws or rejects with UNAUTHENTICATED or PERMISSION_DENIED. */
    admit(method: DescMethod, headers: Headers, isPeer = isTrusted(headers)): Principal | Promise<Principal> {
      if (isPeer) return { id: headers.get(CALLER_HEADER) || ANONYMOUS.id };
      if (isInternal(method)) throw rpcError("PERMISSION_DENIED", `This RPC is for ${system}'s own services.`);
      return authentication ? authentication.admit(credentialsIn(headers), method) : ANONYMOUS;
    },
    /**
     * For what was admitted and lasts: `end` is called when it would not be admitted any more. Gives what stops the checks. A
     * peer is not checked: it ends by itself what its own caller may not go on with.
     */
    recheck(method: DescMethod, headers: Headers, isPeer: boolean, end: (refusal: RpcError) => void): () => void {
      return isPeer || !authentication ? () => {} : authentication.recheck(credentialsIn(headers), method, end);
    },
  };
}
