/** The petstore's errors as HTTP carries them. */
import type { CatalogueErrors } from "connect-transcoder";
import { errorSource } from "#errors";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";

export const errorOptions: CatalogueErrors = {
  catalogue: { reasons: ErrorReasonSchema, domain: errorSource.domain },
  system: errorSource.system,
};
