/** Calls of RPCs that there are not, answered as the caller's protocol has it instead of with HTTP's record of a 404. */

import { unknownRpcAnswer } from "@petstore/rpc/server/unknown-rpc";
import { splitTarget } from "connect-transcoder";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { errors } from "#errors";

/** A service's name has its package in front of it, which no path of the HTTP API looks like. */
const RPC_PATH = /\/\w+(\.\w+)+\/\w+$/;

/** To be called before the hook that refuses what has no route. */
export function answerUnknownRpcs(app: FastifyInstance): void {
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.is404) return done();
    const { path, query } = splitTarget(request.url);
    if (!RPC_PATH.test(path) || isAnybodysJson(request)) return done();
    const answer = unknownRpcAnswer(
      { method: request.method, query, contentType: request.headers["content-type"] },
      errors,
    );
    if (!answer) return done();
    const { status, headers, body } = answer;
    if (body.length > 0) return reply.code(status).headers(headers).send(Buffer.from(body));
    // Trailers-Only is one frame: gRPC's own clients see no status when an empty one follows, as Fastify would send it.
    reply.hijack();
    reply.raw.statusCode = status;
    for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...headers, ...app.rateHeaders(request) }))
      reply.raw.setHeader(name, value as string);
    reply.raw.end();
  });
}

/** Plain JSON without the header that Connect's clients send. */
const isAnybodysJson = ({ method, headers }: FastifyRequest): boolean =>
  method === "POST" &&
  headers["connect-protocol-version"] === undefined &&
  /^application\/json\s*($|;)/i.test(headers["content-type"] ?? "");
