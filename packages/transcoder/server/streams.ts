/** Serves streaming RPCs: what one request for events goes through, from its headers to the end of the stream. */
import { once } from "node:events";
import { PassThrough, Readable, type Writable } from "node:stream";
import type { DescMethodServerStreaming, Message } from "@bufbuild/protobuf";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operation.ts";
import type { Stream } from "../contract/stream.ts";
import { HttpError, UpstreamFailure } from "../errors/http-error.ts";
import { preferredType } from "../policy/media.ts";
import { operationFor, prefersStrict, timeoutMs } from "../request/headers.ts";
import { inputReader } from "../request/input.ts";
import { contentOf } from "../response/encode.ts";
import { type EventFormat, eventFormats, eventReader, type LastWord, type StreamEvent } from "../response/events.ts";
import { type After, after } from "./after.ts";
import { arrivedTooLate } from "./arrival.ts";
import { isGone } from "./node-http.ts";
import type { HandlerOptions } from "./routes.ts";

export type OpenStreams = ReturnType<typeof openStreams>;

/** The open streams of a server, which ends them when it closes. */
export function openStreams() {
  const all = new Set<() => void>();
  let isOver = false;
  let allOut = () => {};
  const out = new Promise<void>((resolve) => {
    allOut = resolve;
  });
  const resolveIfEnded = () => isOver && all.size === 0 && allOut();
  return {
    /** `end` ends the stream in good order. Returns a function to call when its answer has been sent. */
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

export interface StreamOptions extends HandlerOptions {
  readonly streams: OpenStreams;
  /** What the caller is told of a failure. */
  readonly last: (error: unknown, request: FastifyRequest, reply: FastifyReply) => LastWord;
}

/** After so many milliseconds without an event a heartbeat shows that the connection is alive (WHATWG HTML, 9.2.7). */
const HEARTBEAT_MS = 15_000;

/** Most listeners for one event that Fastify and node add to an answer that is piped. */
const PIPE_LISTENERS = 3;

const CLOSING = new HttpError("UNAVAILABLE", "The server closes. Try again.");

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
export function streamHandler(operation: Operation, stream: Stream, options: StreamOptions) {
  const { transport, basePath, clock, limits, endOf, callHeaders, jsonNamesOnly, streams, last, tellUnknown } = options;
  const method = operation.method as DescMethodServerStreaming;
  const readInput = inputReader(operation, basePath, limits.jsonDepth, jsonNamesOnly);
  const eventOf = eventReader(stream, tellUnknown);
  const seenBy = operationFor(operation);

  async function* call(request: FastifyRequest, message: Message, signal: AbortSignal) {
    try {
      const input = createAsyncIterable([message as never]);
      const answer = await transport.stream(method, signal, undefined, callHeaders(request), input);
      for await (const response of answer.message) yield eventOf(response);
    } catch (error) {
      throw new UpstreamFailure(seenBy(request.headers), error);
    }
  }

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { headers, originalUrl: target } = request;
    const format = formatFor(request);
    const deadline = request.arrivedAt + timeoutMs(headers["x-server-timeout"], limits.requestMs);
    if (deadline <= clock()) throw arrivedTooLate();
    const message = readInput({ target, headers, body: undefined, strict: prefersStrict(headers.prefer) });
    // The caller may have left while it was authorized.
    if (isGone(reply.raw)) return reply.send("");
    const over = new AbortController();
    const refused = endOf(request);
    const signal = refused ? AbortSignal.any([refused, over.signal]) : over.signal;
    const ended = streams.add(() => over.abort());
    reply.raw.once("close", () => {
      ended();
      over.abort();
    });
    const events = call(request, message, signal);
    const first = events.next();
    const begun = await Promise.race([first, passed(deadline - clock(), signal)]).catch((error) => {
      throw lastWord(signal) ?? (streams.isOver() ? CLOSING : error);
    });
    reply.code(200).headers(HEADERS).type(`${format.type}; charset=utf-8`);
    if (request.method === "HEAD") {
      first.catch(() => {});
      over.abort();
      return reply.send(Readable.from([]));
    }
    const output = new PassThrough();
    // Piping adds listeners to those of others; beyond its limit Node would warn of a leak.
    reply.raw.setMaxListeners(reply.raw.getMaxListeners() + PIPE_LISTENERS);
    reply.send(output);
    const lastId = stream.id && stream.resume ? (contentOf(message, stream.resume) as string) : "";
    const ways = { signal, tell: (error: unknown) => last(error, request, reply) };
    void writeEvents(output, format, { first, events, isLate: begun === undefined, lastId, ...ways });
    return reply;
  };
}

function formatFor(request: FastifyRequest): EventFormat {
  const type = preferredType(
    request,
    eventFormats.map((format) => format.type),
  );
  return eventFormats.find((format) => format.type === type) as EventFormat;
}

/** Resolves when the time has passed. */
const passed = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const cancel = after(ms, resolve);
    signal.addEventListener("abort", cancel, { once: true });
  });

/** What `writeEvents` writes. */
export interface EventOutput {
  /** The first of the events, which was asked for already. */
  readonly first: Promise<IteratorResult<StreamEvent>>;
  readonly events: AsyncIterator<StreamEvent>;
  /** Whether the answer begins without waiting for the first event any longer. */
  readonly isLate: boolean;
  /** Where the stream goes on; empty if it begins now. */
  readonly lastId: string;
  /** Aborts when nobody reads any more, or is to. An HttpError as its reason is told to who reads. */
  readonly signal: AbortSignal;
  readonly tell: (error: unknown) => LastWord;
}

/** Writes events as they come, and asks for the next when there is room for it; then ends the output. */
export async function writeEvents(
  output: Writable,
  format: EventFormat,
  { first, events, isLate, lastId: begin, signal, tell }: EventOutput,
  runAfter: After = after,
): Promise<void> {
  let lastId = begin;
  let stopClock = () => {};
  const restartClock = () => {
    stopClock();
    stopClock = runAfter(HEARTBEAT_MS, () => {
      if (!output.writableNeedDrain) output.write(format.heartbeat(lastId));
      restartClock();
    });
  };
  const write = async (text: string) => {
    restartClock();
    if (!output.write(text)) await once(output, "drain", { signal });
  };
  let failure: unknown;
  try {
    await write(format.head || (isLate ? format.heartbeat(lastId) : ""));
    for (let next = await first; !next.done; next = await events.next()) {
      lastId = next.value.id || lastId;
      await write(format.event(next.value, lastId));
    }
  } catch (error) {
    failure = error;
  }
  stopClock();
  const last = signal.aborted ? lastWord(signal) : failure;
  if (last !== undefined) output.write(format.error(tell(last), lastId));
  output.end();
}

/** The error that an ended stream sends last: none if it ended in good order, or its reader has left. */
const lastWord = ({ reason }: AbortSignal): HttpError | undefined => (reason instanceof HttpError ? reason : undefined);
