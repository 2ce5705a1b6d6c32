import { createHash, timingSafeEqual } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { DomainError } from "../../../services/resource/errors.ts";
import { SECRET_HEADER } from "../call.ts";

const INTERNAL_PACKAGE = "petstore.internal.v1";

export const isInternal = (method: DescMethod): boolean => method.parent.file.proto.package === INTERNAL_PACKAGE;

// Equal lengths for timingSafeEqual, whatever was sent.
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Internal services are for the petstore's own processes, which know a secret that no caller from outside is told. */
export function createAuthorization(secret: string) {
  const expected = digest(secret);
  return {
    isTrusted(headers: Headers): boolean {
      const given = headers.get(SECRET_HEADER);
      return secret !== "" && given !== null && timingSafeEqual(digest(given), expected);
    },
    check(method: DescMethod, trusted: boolean): void {
      if (isInternal(method) && !trusted)
        throw new DomainError("PERMISSION_DENIED", "This RPC is for the petstore's own services.");
    },
  };
}
