/** Registers operations as Fastify routes: what one request goes through, from its headers to the answer. */
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operations.ts";
import { UpstreamFailure } from "../errors/upstream.ts";
import { isConditional, judgeConditions, readConditions } from "../policy/conditional.ts";
import { deprecationHeaders, sunsetCheck } from "../policy/deprecation.ts";
import { checkAccept, checkContentType, JSON_TYPE, varyByAccept } from "../policy/media.ts";
import { prefersStrict, timeoutMs } from "../request/headers.ts";
import { inputReader } from "../request/input.ts";
import { REQUEST_ID_HEADER } from "../request/request-id.ts";
import { type Answer, answerer } from "../response/answer.ts";
import type { Limits, transcoderDefaults } from "./options.ts";
import { type MakeCall, shareReads, unshared } from "./shared-reads.ts";

export interface RouteOptions extends ReturnType<typeof transcoderDefaults> {
  readonly operations: readonly Operation[];
  readonly transport: Transport;
  readonly limits: Limits;
  readonly clock: () => number;
}

/** The order of checks: authorization, sunset, Accept, Content-Type, size of the body, then `PLACES`. */
export async function registerOperations(app: FastifyInstance, options: RouteOptions): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  for (const operation of options.operations) registerOperation(app, operation, options);
}

function registerOperation(app: FastifyInstance, operation: Operation, options: RouteOptions): void {
  const { basePath, clock } = options;
  const endingHeaders = deprecationHeaders(operation, options.deprecation, basePath);
  const checkSunset = sunsetCheck(operation, options.deprecation, clock);
  app.route({
    method: operation.verb,
    url: basePath + operation.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    bodyLimit: options.limits.bodyBytes,
    onRequest: async (request, reply) => {
      if (endingHeaders) reply.headers(endingHeaders(request.originalUrl));
      varyByAccept(reply);
      await options.authorize(request, operation);
      checkSunset();
      checkAccept(request);
      if (operation.body) checkContentType(request.headers, operation.updateMask !== undefined);
    },
    handler: handlerOf(operation, options),
  });
}

function handlerOf(operation: Operation, options: RouteOptions) {
  const { transport, basePath, clock, limits, callHeaders } = options;
  const readInput = inputReader(operation, basePath, limits.jsonDepth);
  const answerOf = answerer(operation, basePath);
  const conditional = isConditional(operation);
  const join = isRead(operation) ? shareReads<Answer>() : undefined;
  const sentHeaders = operation.requestHeaders.map(({ name }) => name.toLowerCase());
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const { headers, originalUrl: target } = request;
    const deadline = request.arrivedAt + timeoutMs(headers["x-server-timeout"], limits.requestMs);
    const conditions = conditional ? readConditions(headers) : undefined;
    const strict = prefersStrict(headers.prefer);
    const ownHeaders = callHeaders(request);
    const prepare = (): MakeCall<Answer> => {
      const message = readInput({ target, headers, body: request.body as Buffer | undefined, strict });
      return async (until, signal) => {
        // Connect reads 0 as "no limit", and takes whole milliseconds.
        const remainingMs = Math.max(1, Math.ceil(until - clock()));
        const response = await transport.unary(operation.method, signal, remainingMs, ownHeaders, message);
        return answerOf(response.message, response.header, target);
      };
    };
    // All that the call is made of, but for the request's id: the service hears of the first of several.
    const keyOf = () => [
      target,
      strict,
      headers["x-server-timeout"],
      ...sentHeaders.map((name) => headers[name]),
      ...Object.entries({ ...ownHeaders, [REQUEST_ID_HEADER]: "" }),
    ];
    const share = join ? join(JSON.stringify(keyOf()), deadline, prepare) : unshared(deadline, prepare());
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) share.leave();
    });
    let answer: Answer;
    try {
      answer = await share.answer;
    } catch (error) {
      throw new UpstreamFailure(operation, error);
    }
    if (conditions) answer = judgeConditions(conditions, answer);
    reply.code(answer.status).headers(mergeLinks(reply, answer.headers));
    if (answer.body !== undefined) reply.type(JSON_TYPE);
    return reply.send(answer.body);
  };
}

/** Whether the operation does nothing but read, so that one answer does for several callers. */
const isRead = ({ verb, method }: Operation): boolean => verb === "GET" && method.idempotency === Level.NO_SIDE_EFFECTS;

/** A link to the next page stands beside one to a successor. */
function mergeLinks(reply: FastifyReply, headers: Readonly<Record<string, string>>): Record<string, string> {
  const link = reply.getHeader("link");
  return link && headers.link ? { ...headers, link: `${link}, ${headers.link}` } : headers;
}
