/**
 * Serves RPCs whose answers stream: what one request goes through, from its headers to the end of the stream, and what ends it.
 */
import { PassThrough, Readable } from "node:stream";
import type { DescMethodStreaming, Message } from "@bufbuild/protobuf";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Operation, streamsRequests } from "../contract/operation.ts";
import { type HttpError, UpstreamFailure } from "../errors/http-error.ts";
import type { ResponseHeaders } from "../policy/metadata.ts";
import { operationFor, timeoutReader } from "../request/input.ts";
import { arrivedTooLate } from "./admission.ts";
import { after } from "./after.ts";
import { breaksOff, isGone } from "./node-http.ts";
import type { HandlerOptions } from "./options.ts";
import { requestReader } from "./requests.ts";
import { streamFormOf } from "./stream-form.ts";
import { CLOSING, lastWord, unreadLimit, writeStream } from "./write-stream.ts";

/** Most listeners for one event that Fastify and node add to an answer that is piped. */
const PIPE_LISTENERS = 3;

const HEADERS = {
  "cache-control": "no-store",
  // nginx would keep events until it has some kilobytes of them.
  "x-accel-buffering": "no",
};

/**
 * The answer begins with the first response of the RPC: what fails before it is an error like any other. Where none comes in
 * the time for a request, it begins without. From then on no time limits it: it ends when the RPC does, when the caller goes,
 * or when the server closes.
 */
export function streamHandler(operation: Operation, options: HandlerOptions) {
  const { transport, clock, limits, callHeaders, metadataFor, streams, last } = options;
  const method = operation.method as DescMethodStreaming;
  const readRequests = requestReader(operation, options);
  const takesMany = streamsRequests(operation);
  const readTimeout = timeoutReader(options.timeoutHeaders, limits.requestMs);
  const form = streamFormOf(operation, options.codec, options.tellUnknown);
  const seenBy = operationFor(operation);

  /** `begin` gets the metadata with which the answer begins. */
  async function* call(
    request: FastifyRequest,
    requests: AsyncIterable<Message>,
    ownHeaders: Record<string, string>,
    signal: AbortSignal,
    begin: (header: Headers) => void,
  ) {
    try {
      const answer = await transport.stream(method, signal, undefined, ownHeaders, requests as never);
      begin(answer.header);
      for await (const response of answer.message) yield form.read(response);
    } catch (error) {
      throw new UpstreamFailure(seenBy(request.headers), error);
    }
  }

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const begin = form.choose(request);
    const deadline = request.arrivedAt + readTimeout(request.headers);
    if (deadline <= clock()) throw arrivedTooLate();
    const over = new AbortController();
    const end = (error: HttpError) => over.abort(error);
    const { only, messages: requests } = readRequests(request, { signal: over.signal, refuse: end });
    const ownHeaders = callHeaders(request);
    // The caller may have left while it was authorized.
    if (isGone(reply.raw)) return reply.send("");
    const signal = streamEnd(over, request, reply, options, form.endsInOrder ? undefined : CLOSING);
    const metadata: ResponseHeaders = {};
    const keep = (header: Headers) => void Object.assign(metadata, metadataFor?.(header));
    const messages = call(request, requests, ownHeaders, signal, keep);
    const first = messages.next();
    const begun = await Promise.race([first, passed(deadline - clock(), signal)]).catch((error) => {
      throw lastWord(signal) ?? (streams.isOver() ? CLOSING : error);
    });
    const { type, writer } = begin(only, begun);
    reply
      .code(200)
      .headers({ ...HEADERS, ...metadata })
      .type(type);
    if (request.method === "HEAD") {
      first.catch(() => {});
      over.abort();
      return reply.send(Readable.from([]));
    }
    const output = new PassThrough();
    const breakOff = form.endsInOrder ? undefined : breaksOff(output, reply.raw);
    // Nothing else sends them where there is nothing to begin with.
    if (!begun) reply.raw.once("pipe", () => reply.raw.flushHeaders());
    // Piping adds listeners to those of others; beyond its limit Node would warn of a leak.
    reply.raw.setMaxListeners(reply.raw.getMaxListeners() + PIPE_LISTENERS);
    reply.send(output);
    void writeStream(output, writer, {
      first,
      messages,
      isLate: begun === undefined,
      signal,
      tell: (error) => last(error, request, reply),
      breakOff,
      room: takesMany ? unreadLimit(output, request.raw, signal, end) : undefined,
    });
    return reply;
  };
}

/** Resolves when the time has passed. */
const passed = (ms: number, signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    const cancel = after(ms, () => resolve(undefined));
    signal.addEventListener("abort", cancel, { once: true });
  });

/**
 * What ends a stream: `over`, the end of what its caller may have, the caller who leaves, and the server that closes, with
 * `closing` as the reason.
 */
export function streamEnd(
  over: AbortController,
  request: FastifyRequest,
  reply: FastifyReply,
  { endOf, streams }: Pick<HandlerOptions, "endOf" | "streams">,
  closing: HttpError | undefined,
): AbortSignal {
  const refused = endOf(request);
  const signal = refused ? AbortSignal.any([refused, over.signal]) : over.signal;
  const ended = streams.add(() => over.abort(closing));
  reply.raw.once("close", () => {
    ended();
    over.abort();
  });
  return signal;
}

/** The streams that a server has open, so that it can end them when it closes. */
export type OpenStreams = ReturnType<typeof openStreams>;

export function openStreams() {
  const all = new Set<() => void>();
  let isOver = false;
  let allOut = () => {};
  const out = new Promise<void>((resolve) => {
    allOut = resolve;
  });
  const resolveIfEnded = () => isOver && all.size === 0 && allOut();
  return {
    /** `end` ends the stream. Returns a function to call when its answer has been sent. */
    add(end: () => void): () => void {
      all.add(end);
      if (isOver) end();
      return () => {
        all.delete(end);
        resolveIfEnded();
      };
    },
    /** Ends all streams, and those that are added later. Resolves when all answers have been sent. */
    end(): Promise<void> {
      isOver = true;
      for (const end of all) end();
      resolveIfEnded();
      return out;
    },
    isOver: () => isOver,
  };
}
