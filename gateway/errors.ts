/** The petstore's errors as HTTP carries them. */
import type { ErrorOptions } from "connect-transcoder";
import { errorSource } from "#errors";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";

export const errorOptions: ErrorOptions = {
  catalogue: { reasons: ErrorReasonSchema, domain: errorSource.domain },
  system: errorSource.system,
};
