/** The petstore's catalogue of errors, and where what goes wrong in it is said to have gone wrong. */
import type { ErrorOptions } from "connect-transcoder";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";

export const errorOptions: ErrorOptions = {
  catalogue: { reasons: ErrorReasonSchema, domain: "petstore" },
  system: "the petstore",
};
