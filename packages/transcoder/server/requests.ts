/** The messages of a request: one, or as many as its body brings while it arrives. Each is read as that of a unary call is. */
import { addAbortSignal, PassThrough, type Readable } from "node:stream";
import { create, type Message } from "@bufbuild/protobuf";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import type { FastifyRequest } from "fastify";
import { type Body, type Operation, streamsRequests, takesBytes } from "../contract/operation.ts";
import { HttpError, inMessage } from "../errors/http-error.ts";
import { type BodyTypes, bodyTypesOf, checkUntyped, isLines } from "../policy/media.ts";
import { bytesReader } from "../request/body-fields.ts";
import { inputReader, isStrict } from "../request/input.ts";
import { splitJson, splitLines } from "../request/split.ts";
import type { HandlerOptions } from "./options.ts";

type ReadMessage = (request: FastifyRequest, body: Uint8Array | undefined) => Message;

/** Compiles the reader of one message, of a request and one body. @throws HttpError when it is wrong */
export function messageReader(operation: Operation, options: HandlerOptions): ReadMessage {
  const { limits, ignoreUnknown } = options;
  const readInput = inputReader(operation, { ...options, maxDepth: limits.jsonDepth });
  return ({ headers, originalUrl: target }, body) =>
    readInput({ target, headers, body, strict: isStrict(headers.prefer, ignoreUnknown) });
}

export interface Requests {
  /** The one message, where no more can come. */
  readonly only: Message | undefined;
  /** Asks the caller for the next message when it is asked for one. Ends, or fails, when the signal aborts. */
  readonly messages: AsyncIterable<Message>;
}

/** What ends the reading of messages, and who hears of it. */
export interface Reading {
  readonly signal: AbortSignal;
  /** Called with what is wrong with a message, before the messages fail. */
  readonly refuse: (error: HttpError) => void;
  /** Called each time that something has come, and when all is there. */
  readonly progress?: ((isWhole: boolean) => void) | undefined;
}

type ReadRequests = (request: FastifyRequest, reading: Reading) => Requests;

/** @throws HttpError when the one message is wrong */
export function requestReader(operation: Operation, options: HandlerOptions): ReadRequests {
  const { limits, requireContentType } = options;
  const read = messageReader(operation, options);
  const { body } = operation;
  if (!body || !streamsRequests(operation))
    return oneMessage(operation, read, bodyTypesOf(operation, requireContentType));
  const readMessages = takesBytes(operation)
    ? partsReader(operation, body, read)
    : messagesReader(limits.bodyBytes, read);
  return (request, reading) => ({ only: undefined, messages: refusing(readMessages(request, reading), reading) });
}

type ReadMany = (request: FastifyRequest, reading: Reading) => AsyncIterable<Message>;

function oneMessage({ body: takesBody }: Operation, read: ReadMessage, bodyTypes: BodyTypes): ReadRequests {
  return (request) => {
    const body = request.body as Buffer | undefined;
    if (takesBody) checkUntyped(request.headers, body, bodyTypes);
    const only = read(request, body);
    return { only, messages: createAsyncIterable([only]) };
  };
}

/** Each message is a request by itself, of which path, query and headers are a part. */
const messagesReader = (maxBytes: number, read: ReadMessage): ReadMany =>
  async function* (request, reading) {
    const { push, end } = isLines(request.headers["content-type"]) ? splitLines(maxBytes) : splitJson(maxBytes);
    let count = 0;
    const numbered = (bytes: Uint8Array): Message => {
      count++;
      try {
        return read(request, bytes);
      } catch (error) {
        throw error instanceof HttpError ? inMessage(error, count) : error;
      }
    };
    for await (const piece of piecesOf(request, reading)) for (const bytes of push(piece)) yield numbered(bytes);
    for (const bytes of end()) yield numbered(bytes);
  };

/** The pieces of one body. The first message has the type, and what the path, the query and the headers say. */
function partsReader({ method }: Operation, body: Body, read: ReadMessage): ReadMany {
  const readBytes = bytesReader(body);
  return async function* (request, reading) {
    let isFirst = true;
    for await (const piece of piecesOf(request, reading)) {
      if (isFirst) yield read(request, piece);
      else {
        const message = create(method.input);
        readBytes(message, {}, piece);
        yield message;
      }
      isFirst = false;
    }
    if (isFirst) yield read(request, undefined);
  };
}

async function* refusing(messages: AsyncIterable<Message>, { signal, refuse }: Reading): AsyncIterable<Message> {
  try {
    yield* messages;
  } catch (error) {
    if (!signal.aborted && error instanceof HttpError) refuse(error);
    throw error;
  }
}

/** The body as it comes, as far as it is asked for. What is not asked for any more stays with the request. */
async function* piecesOf({ raw }: FastifyRequest, { signal, progress }: Reading): AsyncIterable<Buffer> {
  const pieces: Readable = addAbortSignal(signal, new PassThrough());
  pieces.on("error", () => {}); // it may be aborted while nobody waits for it
  raw.pipe(pieces as PassThrough);
  try {
    for await (const piece of pieces) {
      progress?.(false);
      yield piece;
    }
    progress?.(true);
  } finally {
    raw.unpipe();
  }
}
