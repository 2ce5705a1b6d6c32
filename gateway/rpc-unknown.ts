/** Calls of RPCs that there are not, answered as the caller's protocol has it instead of with HTTP's record of a 404. */
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { fault } from "#shared/rpc/fault.ts";
import { splitTarget } from "./transcoder/path.ts";

/** A service's name has its package in front of it, which no path of the HTTP API looks like. */
const RPC_PATH = /\/\w+(\.\w+)+\/\w+$/;

/** To be called before the hook that refuses what has no route. */
export function answerUnknownRpcs(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    if (!request.is404 || !RPC_PATH.test(splitTarget(request.url).path)) return;
    if (isGrpcWeb(request)) return answerGrpcWeb(reply);
    if (isConnect(request)) return answerConnect(reply);
  });
}

const isGrpcWeb = ({ method, headers }: FastifyRequest): boolean =>
  method === "POST" && /^application\/grpc-web($|[+;-])/.test(headers["content-type"] ?? "");

/** Plain JSON without the header that Connect's clients send may be anybody's. */
const isConnect = ({ method, headers, url }: FastifyRequest): boolean =>
  method === "POST"
    ? headers["connect-protocol-version"] !== undefined ||
      /^application\/(proto|connect\+\w+)($|;)/.test(headers["content-type"] ?? "")
    : method === "GET" && new URLSearchParams(splitTarget(url).query).has("connect");

function unimplemented(): ConnectError {
  const { rawMessage, details } = fault("ROUTE_NOT_FOUND", "There is no such RPC here.");
  const error = new ConnectError(rawMessage, Code.Unimplemented);
  error.details = details;
  return error;
}

const endStream = createEndStreamSerialization(undefined);

/** "Trailers-only": the status stands among the headers, and there is no body. */
function answerGrpcWeb(reply: FastifyReply): FastifyReply {
  const trailers = new Headers();
  setTrailerStatus(trailers, unimplemented());
  return reply
    .code(200)
    .type(reply.request.headers["content-type"] ?? "")
    .headers(Object.fromEntries(trailers))
    .send();
}

/** A stream is answered by its last message alone, which holds the error. */
function answerConnect(reply: FastifyReply): FastifyReply {
  const error = unimplemented();
  const type = reply.request.headers["content-type"] ?? "";
  if (type.startsWith("application/connect+")) {
    const end = endStream.serialize({ metadata: new Headers(), error });
    return reply
      .code(200)
      .type(type)
      .send(Buffer.from(encodeEnvelope(endStreamFlag, end)));
  }
  return reply
    .code(codeToHttpStatus(error.code))
    .type("application/json")
    .send(Buffer.from(errorToJsonBytes(error, {})));
}
