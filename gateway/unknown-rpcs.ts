/** Answers calls of unknown RPCs in the caller's RPC protocol, not with the 404 error of the HTTP API. */

import type { PlainAnswer } from "@petstore/rpc/http/answers";
import { unknownRpcAnswer } from "@petstore/rpc/server/error-answer";
import { splitTarget } from "connect-transcoder";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { errors } from "#errors";

/** An RPC's path has the service's full name, with its package; no path of the HTTP API looks like that. */
const RPC_PATH = /\/\w+(\.\w+)+\/\w+$/;

export function answerUnknownRpcs(app: FastifyInstance): void {
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.is404) return done();
    const { path, query } = splitTarget(request.url);
    if (!RPC_PATH.test(path) || isAnybodysJson(request)) return done();
    // There is one, but not by this method.
    if (app.hasRoute({ method: "POST", url: path })) return done();
    const answer = unknownRpcAnswer(request, query, errors);
    if (!answer) return done();
    sendAnswer(app, reply, answer);
  });
}

/** Answers a call that is not forwarded, with what the gateway says in every answer. */
export function sendAnswer(app: FastifyInstance, reply: FastifyReply, { status, headers, body }: PlainAnswer): void {
  if (body.length > 0) return void reply.code(status).headers(headers).send(Buffer.from(body));
  // A Trailers-Only response is one frame. Fastify would send an empty second one, and then gRPC's own clients see no
  // status.
  reply.hijack();
  reply.raw.statusCode = status;
  for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...headers, ...app.rateHeaders(reply.request) }))
    reply.raw.setHeader(name, value as string);
  reply.raw.end();
}

/** Whether it is plain JSON without the header that Connect's clients send. */
const isAnybodysJson = ({ method, headers }: FastifyRequest): boolean =>
  method === "POST" &&
  headers["connect-protocol-version"] === undefined &&
  /^application\/json\s*($|;)/i.test(headers["content-type"] ?? "");
