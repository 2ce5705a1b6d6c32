import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { FastifyReply } from "fastify";

/** Answers an RPC with an error in the form of the protocol that the caller speaks. */
export function sendFault(reply: FastifyReply, error: ConnectError): FastifyReply {
  const { headers, raw } = reply.request;
  if (!raw.complete) reply.header("connection", "close"); // its body will not be read
  const type = headers["content-type"] ?? "";
  if (!type.startsWith("application/grpc-web"))
    return reply
      .code(codeToHttpStatus(error.code))
      .type("application/json")
      .send(Buffer.from(errorToJsonBytes(error, {})));
  const trailers = new Headers();
  setTrailerStatus(trailers, error);
  return reply.code(200).type(type).headers(Object.fromEntries(trailers)).send();
}
