/** The failure of a call as a link carries it: exactly what a plain RPC has in its trailers. */
import { fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { fromAny, toAny } from "../errors/details.ts";
import type { Answer, AnswerSchema, Failure } from "../gen/link/internal/v1/link_service_pb.ts";
import { toFields, toHeaders } from "./headers.ts";

type AnswerInit = MessageInitShape<typeof AnswerSchema>;

export const failedAnswer = (id: number, { code, rawMessage: message, details, metadata }: ConnectError) =>
  ({
    id,
    outcome: {
      case: "failure",
      value: { code, message, details: details.map((detail) => toBinary(AnySchema, toAny(detail))) },
    },
    headers: toFields(metadata),
  }) satisfies AnswerInit;

export function toError({ code, message, details }: Failure, headers: Answer["headers"]): ConnectError {
  const error = new ConnectError(message, code, toHeaders(headers));
  error.details = details.map((bytes) => fromAny(fromBinary(AnySchema, bytes)));
  return error;
}
