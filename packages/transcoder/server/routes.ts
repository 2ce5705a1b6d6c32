/** What the requests of an operation go through, from their headers to the answer. */
import type { IncomingMessage } from "node:http";
import { finished } from "node:stream/promises";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answersBytes, streamsAnswers, streamsRequests } from "../contract/kinds.ts";
import type { Operation } from "../contract/operation.ts";
import { UpstreamFailure } from "../errors/http-error.ts";
import { isConditional, judgeConditions, readConditions } from "../policy/conditional.ts";
import { deprecationHeaders, sunsetCheck } from "../policy/deprecation.ts";
import { bodyTypesOf, checkAccept, checkContentType, checkUntyped, varyByAccept } from "../policy/media.ts";
import { isStrict } from "../request/headers.ts";
import { inputReader } from "../request/input.ts";
import { timeoutReader } from "../request/timeout.ts";
import { type Answer, answerer, asksForOne } from "../response/answer.ts";
import type { TellUnknown } from "../response/unknown-values.ts";
import { prepareValidation } from "../validation/validate.ts";
import { arrivedTooLate } from "./arrival.ts";
import { arrivalTimer, bodyReader, type InTime, type ReadBody } from "./bodies.ts";
import { type Endpoint, routeOperations } from "./dispatch.ts";
import { announceBody } from "./node-http.ts";
import type { Limits, transcoderDefaults } from "./options.ts";
import { recordAddress } from "./record-address.ts";
import type { Router } from "./router.ts";
import { type MakeCall, shareReads, unshared } from "./shared-reads.ts";
import { type StreamOptions, streamHandler } from "./streams.ts";
import { uploadHandler } from "./uploads.ts";

export interface HandlerOptions extends ReturnType<typeof transcoderDefaults> {
  /** The way to the operation's service. */
  readonly transport: Transport;
  readonly limits: Limits;
  readonly clock: () => number;
  readonly tellUnknown: TellUnknown;
}

export interface RouteOptions extends Omit<StreamOptions, "transport"> {
  readonly services: readonly { readonly operations: readonly Operation[]; readonly transport: Transport }[];
  readonly router: Router;
}

export interface OperationOptions extends StreamOptions {
  /** Where the record at a path is found. */
  readonly addressOf: (path: string) => string;
  /** Reads a body that is one message. */
  readonly read: ReadBody;
  readonly inTime: InTime;
}

/** Verbs whose bodies Fastify does not read. */
const WITHOUT_BODY: readonly string[] = ["GET", "HEAD", "TRACE"];

/** Registers the operations of all services. Returns what each does with its requests. */
export async function registerOperations(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<Map<Operation, Endpoint>> {
  const { services, router, limits, clock } = options;
  const operations = services.flatMap((service) => service.operations);
  app.removeAllContentTypeParsers();
  const inTime = arrivalTimer(limits, clock, operations.some(streamsRequests));
  const read = bodyReader(limits, inTime);
  app.addContentTypeParser("*", (request: FastifyRequest, payload: IncomingMessage) =>
    // A stream is read by who serves it.
    request.operation && streamsRequests(request.operation) ? Promise.resolve() : read(request, payload),
  );
  await prepareValidation(operations.map(({ method }) => method.input));
  const addressOf = recordAddress(operations, router, options);
  const endpoints = new Map(
    services.flatMap(({ operations, transport }) =>
      operations.map(
        (operation) => [operation, endpointOf(operation, { ...options, transport, addressOf, read, inTime })] as const,
      ),
    ),
  );
  routeOperations(app, router, (operation) => endpoints.get(operation) as Endpoint);
  return endpoints;
}

/** The order of checks: authorization, sunset, Accept, Content-Type, size of the body, then headers, path, query and body. */
function endpointOf(operation: Operation, options: OperationOptions): Endpoint {
  const { basePath, clock, read, inTime } = options;
  const isStreamed = streamsAnswers(operation);
  const isBytes = answersBytes(operation);
  const bodyTypes = bodyTypesOf(operation, options.requireContentType);
  const endingHeaders = deprecationHeaders(operation, options.deprecation, basePath);
  const checkSunset = sunsetCheck(operation, options.deprecation, clock);
  const takesStream = streamsRequests(operation);
  const answer: Endpoint["handle"] = handlerFor(operation, options);
  return {
    endingHeaders,
    // A promise costs as much as all these checks.
    admit(request, reply, done) {
      if (endingHeaders) reply.headers(endingHeaders(request.originalUrl));
      varyByAccept(reply);
      const admission = options.authorize(request, operation);
      if (admission) return admission.then(() => check(request));
      const arrival = check(request);
      if (arrival) return arrival;
      done();
    },
    handle(request, reply) {
      if (!operation.body || takesStream || !WITHOUT_BODY.includes(request.method)) return answer(request, reply);
      return read(request, request.raw).then((body) => {
        request.body = body;
        return answer(request, reply);
      });
    },
  };

  function check(request: FastifyRequest): Promise<void> | undefined {
    checkSunset();
    const isDropping = !operation.body && dropContent(request.raw);
    // Of bytes it is known only with the answer what they are.
    if (!isStreamed && !isBytes) checkAccept(request);
    if (operation.body) {
      announceBody(request.raw);
      checkContentType(request.headers, bodyTypes);
    } else if (operation.verb !== "GET") {
      request.headers = NO_CONTENT;
      // If it breaks off, the caller is told that the request can't be read: then it must not be carried out.
      if (isDropping) return inTime(request, finished(request.raw, { writable: false }));
    }
  }
}

/**
 * Discards a body that has no meaning (RFC 9110, 9.3), and returns whether there is one. Unread, the request would run into
 * the limit for its arrival.
 */
function dropContent(request: IncomingMessage & { readonly stream?: { readonly endAfterHeaders: boolean } }): boolean {
  const { stream, headers } = request;
  const isEmpty = stream ? stream.endAfterHeaders : !("content-length" in headers || "transfer-encoding" in headers);
  if (!isEmpty) request.resume();
  return !isEmpty;
}

/** Overrides the headers of a body that has no meaning, as in a DELETE (RFC 9110, 9.3.5): Fastify would check them. */
const NO_CONTENT = { "content-type": undefined, "content-length": undefined, "transfer-encoding": undefined };

function handlerFor(operation: Operation, options: OperationOptions): Endpoint["handle"] {
  if (streamsAnswers(operation)) return streamHandler(operation, options);
  return operation.method.methodKind === "client_streaming"
    ? uploadHandler(operation, options)
    : handlerOf(operation, options);
}

function handlerOf(operation: Operation, options: OperationOptions) {
  const { transport, clock, limits, callHeaders, passedOn, metadataFor, answerDependsOn } = options;
  const method = operation.method as DescMethodUnary;
  const readInput = inputReader(operation, { ...options, maxDepth: limits.jsonDepth });
  const answerOf = answerer(operation, options);
  const isOne = asksForOne(operation);
  const conditional = isConditional(operation);
  const { idFilter } = operation;
  const join = isRead(operation) ? shareReads<Answer>() : undefined;
  const bodyTypes = bodyTypesOf(operation, options.requireContentType);
  const readTimeout = timeoutReader(options.timeoutHeaders, limits.requestMs);
  const sentHeaders = operation.requestHeaders.map(({ name }) => name.toLowerCase());
  return (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { headers, originalUrl: target } = request;
    if (operation.body) checkUntyped(headers, request.body as Buffer | undefined, bodyTypes);
    const limitMs = readTimeout(headers);
    const deadline = request.arrivedAt + limitMs;
    if (deadline <= clock()) throw arrivedTooLate();
    const caller = { id: request.id, deadline, limitMs };
    const conditions = conditional && !idFilter ? readConditions(headers) : undefined;
    const strict = isStrict(headers.prefer, options.ignoreUnknown);
    const prepare = (): MakeCall<Answer> => {
      const message = readInput({ target, headers, body: request.body as Buffer | undefined, strict });
      const ownHeaders = callHeaders(request);
      return async (until, signal) => {
        // Connect reads 0 as "no limit", and takes whole milliseconds.
        const remainingMs = Math.max(1, Math.ceil(until - clock()));
        const response = await transport.unary(method, signal, remainingMs, ownHeaders, message);
        const answer = answerOf(response.message, response.header, target, isOne(message));
        return metadataFor ? { ...answer, metadata: metadataFor(response.header, response.trailer) } : answer;
      };
    };
    /** All that the message is read from. The text is last because it alone may have line feeds. */
    const keyOf = (text: string): string => {
      let key = `${strict}\n${target}\n${limitMs}`;
      for (const name of sentHeaders) key += keyPart(headers[name]);
      for (const [name, value] of Object.entries(passedOn(request))) key += keyPart(`${name}: ${value}`);
      return `${key}\n${text}`;
    };
    const dependsOn = join && answerDependsOn(request);
    const share =
      join && dependsOn !== undefined ? join(keyOf(dependsOn), caller, prepare) : unshared(caller, prepare());
    request.calledAs = share.calledAs;
    const { raw } = reply;
    raw.on("close", () => {
      // Not `writableFinished`, which is also true of an HTTP/2 stream that was reset.
      if (!raw.writableEnded) share.leave();
    });
    return share.answer.then(
      (answer) => {
        // A list has conditions where it is answered with one record.
        const judging = conditions ?? (idFilter && answer.headers.etag ? readConditions(headers) : undefined);
        const judged = judging ? judgeConditions(judging, answer) : answer;
        reply.code(judged.status).headers(mergeLinks(reply, judged.headers));
        if (judged.metadata) reply.headers(judged.metadata);
        // To a HEAD, Fastify sends the length of this body: in a 304 it is the length of the 200 (RFC 9110, 8.6).
        const body = request.method === "HEAD" ? answer.body : judged.body;
        if (body !== undefined) reply.type(answer.type);
        reply.send(body);
      },
      (error) => {
        throw new UpstreamFailure(operation, error);
      },
    );
  };
}

/** Unambiguous, because neither a request target nor a header's value has a line feed. */
const keyPart = (value: string | string[] | undefined): string => (value === undefined ? "\n-" : `\n+${value}`);

/** Whether the operation does nothing but read, so that one answer does for several callers. */
const isRead = ({ verb, body, method }: Operation): boolean =>
  verb === "GET" && !body && method.idempotency === Level.NO_SIDE_EFFECTS;

/** Keeps a link to a successor beside the link to the next page. */
function mergeLinks(reply: FastifyReply, headers: Readonly<Record<string, string>>): Record<string, string> {
  const link = reply.getHeader("link");
  return link && headers.link ? { ...headers, link: `${link}, ${headers.link}` } : headers;
}
