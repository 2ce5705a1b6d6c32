import type { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../packages/client/gen/google/rpc/error_details_pb.ts";

/** The petstore's reason, or UNAVAILABLE if no petstore answered. */
export const reasonOf = (error: ConnectError): string =>
  error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "petstore")?.reason ?? "UNAVAILABLE";
