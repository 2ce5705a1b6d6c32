/**
 * The petstore's errors as RPCs carry them: the reasons of the contract, in a google.rpc.ErrorInfo of the domain "petstore".
 * And as HTTP carries them.
 */
import { getOption } from "@bufbuild/protobuf";
import { createErrorCatalogue } from "@petstore/rpc/errors";
import type { CatalogueErrors } from "connect-transcoder";
import { error } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { type ErrorReason, ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";

/** A reason from the catalogue in `proto/petstore/common/v1/error_reason.proto`. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** The domain of the reasons in an ErrorInfo, and the name of the whole system in messages. */
export const errorSource = { domain: "petstore", system: "the petstore" } as const;

export const errors = createErrorCatalogue<Reason>(ErrorReasonSchema, {
  ...errorSource,
  grpcCode: (value) => getOption(value, error).grpcCode,
});
export const { rpcError, reasonOf } = errors;

/** The same for HTTP. */
export const errorOptions: CatalogueErrors = {
  catalogue: { reasons: ErrorReasonSchema, domain: errorSource.domain },
  system: errorSource.system,
};
