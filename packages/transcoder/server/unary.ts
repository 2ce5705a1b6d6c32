/** Serves RPCs that answer one request once. */
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { UpstreamFailure } from "../errors/http-error.ts";
import { isConditional, judgeConditions, readConditions } from "../policy/conditional.ts";
import { bodyTypesOf, checkUntyped } from "../policy/media.ts";
import { isStrict, timeoutReader } from "../request/input.ts";
import { type Answer, answerer, asksForOne } from "../response/answer.ts";
import { arrivedTooLate } from "./admission.ts";
import type { HandlerOptions } from "./options.ts";
import { messageReader } from "./requests.ts";
import { type Caller, type MakeCall, type Share, shareReads } from "./shared-reads.ts";

/** A unary RPC: reads its request, has it answered by a call, of its own or one that is shared, and sends the answer. */
export function unaryHandler(operation: Operation, options: HandlerOptions) {
  const { transport, clock, limits, callHeaders, passedOn, metadataFor, answerDependsOn } = options;
  const method = operation.method as DescMethodUnary;
  const readInput = messageReader(operation, options);
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
    const prepare = (): MakeCall<Answer> => {
      const message = readInput(request, request.body as Buffer | undefined);
      const ownHeaders = callHeaders(request);
      return async (until, signal) => {
        // Connect reads 0 as "no limit", and takes whole milliseconds.
        const remainingMs = Math.max(1, Math.ceil(until - clock()));
        const response = await transport.unary(method, signal, remainingMs, ownHeaders, message).catch((error) => {
          // A service that knows the deadline may reset the call at it, as grpc-go does, before Connect sees that it has passed.
          throw isReset(error) && until <= clock() ? timedOut(error) : error;
        });
        const answer = answerOf(response.message, response.header, target, isOne(message));
        return metadataFor ? { ...answer, metadata: metadataFor(response.header, response.trailer) } : answer;
      };
    };
    /** All that the message is read from. The text is last because it alone may have line feeds. */
    const keyOf = (text: string): string => {
      let key = `${isStrict(headers.prefer, options.ignoreUnknown)}\n${target}\n${limitMs}`;
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

/** A call of one caller alone, made at once. */
export function unshared<A>({ id, deadline }: Caller, call: MakeCall<A>): Share<A> {
  const gone = new AbortController();
  return { answer: call(deadline, gone.signal), calledAs: id, leave: () => gone.abort() };
}

/** Whether a call was reset, and not ended by a status of the service. */
const isReset = (error: unknown): boolean =>
  error instanceof ConnectError && error.code === Code.Canceled && !error.metadata.has("grpc-status");

/** The error that Connect has for a call at its deadline. */
const timedOut = (cause: unknown): ConnectError =>
  new ConnectError("the operation timed out", Code.DeadlineExceeded, undefined, undefined, cause);

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
