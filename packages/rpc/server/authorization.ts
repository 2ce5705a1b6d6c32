/** Who may call internal services: the system's own processes. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { ANONYMOUS, CALLER_HEADER, type Principal, SECRET_HEADER } from "../call.ts";
import type { ErrorCatalogue } from "../errors/catalogue.ts";

/** Services of a proto package with this part in its name, such as "library.internal.v1", are internal. */
const INTERNAL = "internal";

export const isInternal = ({ parent }: DescMethod): boolean => parent.file.proto.package.split(".").includes(INTERNAL);

// Equal lengths for timingSafeEqual, whatever was sent.
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Whether a request comes from one of the system's own processes, which `isTrusted` finds out by its secret. */
export const isPeerRequest = (
  { isTrusted }: { isTrusted(headers: Headers): boolean },
  { headers: { [SECRET_HEADER]: secret } }: IncomingMessage,
): boolean => typeof secret === "string" && isTrusted(new Headers({ [SECRET_HEADER]: secret }));

/** Who calls a service: a process of the system in its caller's name, or somebody from outside. */
export interface ServicePrincipal extends Principal {
  readonly isPeer: boolean;
}

/**
 * Who calls a service, and what they may. The system's own processes know a secret that no caller from outside is told:
 * internal services are for them alone, and they alone are believed when they name the caller that they speak for.
 */
export function createAuthorization(secret: string, { rpcError, system }: ErrorCatalogue) {
  const expected = digest(secret);
  const isTrusted = (headers: Headers): boolean => {
    const given = headers.get(SECRET_HEADER);
    return secret !== "" && given !== null && timingSafeEqual(digest(given), expected);
  };
  return {
    isTrusted,
    /** `isPeer` where it is known already. */
    authenticate(headers: Headers, isPeer = isTrusted(headers)): ServicePrincipal {
      return { id: (isPeer && headers.get(CALLER_HEADER)) || ANONYMOUS.id, isPeer };
    },
    /** Throws PERMISSION_DENIED. */
    authorize({ isPeer }: ServicePrincipal, method: DescMethod): void {
      if (isInternal(method) && !isPeer)
        throw rpcError("PERMISSION_DENIED", `This RPC is for ${system}'s own services.`);
    },
  };
}
