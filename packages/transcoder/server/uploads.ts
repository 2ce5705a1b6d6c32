/** Serves RPCs that answer a stream of requests once. */
import type { DescMethodClientStreaming, Message } from "@bufbuild/protobuf";
import { type CallOptions, createClient } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { HttpError, UpstreamFailure } from "../errors/http-error.ts";
import { timeoutReader } from "../request/input.ts";
import { answerer } from "../response/answer.ts";
import { after } from "./after.ts";
import { isGone } from "./node-http.ts";
import type { HandlerOptions } from "./options.ts";
import { requestReader } from "./requests.ts";
import { streamEnd } from "./streams.ts";
import { CLOSING, lastWord } from "./write-stream.ts";

type Ask = (messages: AsyncIterable<Message>, options: CallOptions) => Promise<Message>;

/**
 * A stream of requests may take any time, but not be silent for longer than a request may take; nor may the answer to it.
 */
export function uploadHandler(operation: Operation, options: HandlerOptions) {
  const { transport, limits, callHeaders, metadataFor } = options;
  const { localName } = operation.method as DescMethodClientStreaming;
  const ask = createClient(operation.service, transport)[localName] as unknown as Ask;
  const readRequests = requestReader(operation, options);
  const readTimeout = timeoutReader(options.timeoutHeaders, limits.requestMs);
  const answerOf = answerer(operation, options);

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const silenceMs = readTimeout(request.headers);
    // The caller may have left while it was authorized.
    if (isGone(reply.raw)) return reply.send("");
    const over = new AbortController();
    const signal = streamEnd(over, request, reply, options, CLOSING);
    let stopClock = after(silenceMs, () => over.abort(TOO_SLOW));
    const progress = (isWhole: boolean) => {
      stopClock();
      stopClock = after(silenceMs, () => over.abort(isWhole ? LATE : TOO_SLOW));
    };
    try {
      const { messages } = readRequests(request, { signal, refuse: (error) => over.abort(error), progress });
      let [header, trailer] = [new Headers(), new Headers()];
      const response = await ask(messages, {
        signal,
        headers: callHeaders(request),
        onHeader: (fields) => {
          header = fields;
        },
        onTrailer: (fields) => {
          trailer = fields;
        },
      });
      const { status, headers, type, body } = answerOf(response, header, request.originalUrl);
      reply.code(status).headers(headers);
      if (metadataFor) reply.headers(metadataFor(header, trailer));
      if (body !== undefined) reply.type(type);
      return reply.send(body);
    } catch (error) {
      throw lastWord(signal) ?? (error instanceof HttpError ? error : new UpstreamFailure(operation, error));
    } finally {
      stopClock();
    }
  };
}

const TOO_SLOW = new HttpError("REQUEST_TIMEOUT", "The request did not arrive in time.");
const LATE = new HttpError("DEADLINE_EXCEEDED", "The service did not answer in time.");
