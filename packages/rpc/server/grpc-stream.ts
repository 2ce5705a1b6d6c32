/**
 * Serves streams in binary gRPC without Connect's handler, because what Connect (2.2) holds for each open stream takes more
 * memory than everything else together. Connect's own functions read the request and write the status, so a caller can't tell
 * the difference. Nothing of the request is kept once its message was read.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { DescMethod, DescMethodServerStreaming, Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type Compression,
  compressionNegotiate,
  createAsyncIterable,
  createMethodSerializationLookup,
  encodeEnvelope,
  envelopeCompress,
  pipe,
  transformDecompressEnvelope,
  transformParseEnvelope,
  transformSplitEnvelope,
} from "@connectrpc/connect/protocol";
import {
  contentTypeProto,
  headerAcceptEncoding,
  headerEncoding,
  headerTimeout,
  parseContentType,
  parseTimeout,
  setTrailerStatus,
} from "@connectrpc/connect/protocol-grpc";
import { isGone } from "connect-transcoder/http";
import { MAX_MESSAGE_BYTES } from "../http/limits.ts";
import { dropEndlessTimeout, knownFields, sayable } from "./connect.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { PREFIX_BYTES, readMessage } from "./message-limit.ts";
import type { Caller } from "./run.ts";

export interface GrpcStreamOptions {
  readonly dispatcher: Pick<Dispatcher, "stream" | "errors" | "clock">;
  readonly gate: Gate;
  readonly compressions: readonly Compression[];
  /** Most bytes of a request message. */
  readonly maxBytes: number;
  /** Called when no response could be sent. */
  readonly giveUp: (request: IncomingMessage, response: ServerResponse, error: unknown) => void;
}

/** Checks a call before its message is read. Rejects if the caller may not call the method, or if there is no room. */
export type Gate = (method: DescMethod, headers: Headers, caller: Caller) => Promise<void>;

/** Serves one request. Resolves when all work for it has ended, and never rejects. */
export type ServeStream = (request: IncomingMessage, response: ServerResponse, caller: Caller) => Promise<void>;

/** Whether a request is a call in binary gRPC. Connect serves all others. */
export const isBinaryGrpc = ({ method, headers }: IncomingMessage): boolean =>
  method === "POST" && parseContentType(headers["content-type"] ?? null)?.binary === true;

/** The size in bytes from which on a message is compressed for clients that accept it, as in Connect. */
const COMPRESSED_BYTES = 1024;

/** By message, so that clients that get the same one share its encoding. */
const envelopes = new WeakMap<Message, Uint8Array>();

/** A message as gRPC frames it, uncompressed whatever was negotiated: its flags are 0. */
export function envelopeOf<M extends Message>(message: M, serialize: (message: M) => Uint8Array): Uint8Array {
  const known = envelopes.get(message);
  if (known) return known;
  const envelope = encodeEnvelope(0, serialize(message) as Uint8Array<ArrayBuffer>);
  envelopes.set(message, envelope);
  return envelope;
}

type Encode = (message: Message) => Uint8Array | Promise<Uint8Array>;

export function serveGrpcStream(
  method: DescMethodServerStreaming,
  { dispatcher, gate, compressions, maxBytes, giveUp }: GrpcStreamOptions,
): ServeStream {
  const limits = { readMaxBytes: maxBytes, writeMaxBytes: MAX_MESSAGE_BYTES };
  const serialization = createMethodSerializationLookup(method, knownFields, undefined, limits);
  const [input, output] = [serialization.getI(true), serialization.getO(true)];

  const plain = (message: Message) => envelopeOf(message, output.serialize);
  const packed =
    (compression: Compression): Encode =>
    (message) => {
      const envelope = plain(message);
      return envelope.length < PREFIX_BYTES + COMPRESSED_BYTES ? envelope : pack(envelope, compression);
    };

  async function open(
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    responseHeaders: Headers,
  ): Promise<{ messages: AsyncIterable<Message>; encode: Encode }> {
    const headers = headersOf(request.headers);
    const timeout = parseTimeout(headers.get(headerTimeout), Number.MAX_SAFE_INTEGER);
    const deadline = dispatcher.clock() + (timeout.timeoutMs ?? 0);
    const [requested, accepted] = [headers.get(headerEncoding), headers.get(headerAcceptEncoding)];
    const compression = compressionNegotiate([...compressions], requested, accepted, headerAcceptEncoding);
    if (compression.response) responseHeaders.set(headerEncoding, compression.response.name);
    await gate(method, headers, caller);
    if (compression.error) {
      responseHeaders.set(headerAcceptEncoding, compressions.map(({ name }) => name).join(","));
      throw compression.error;
    }
    if (timeout.error) throw timeout.error;
    const message = await only(
      pipe(
        createAsyncIterable([await readMessage(request, contentTypeProto, maxBytes, dispatcher.errors)]),
        transformSplitEnvelope(maxBytes),
        transformDecompressEnvelope(compression.request, maxBytes),
        transformParseEnvelope<Message>(input as never),
      ),
    );
    const messages = dispatcher.stream(method, message, {
      ...caller,
      headers,
      timeoutMs: timeout.timeoutMs === undefined ? undefined : deadline - dispatcher.clock(),
      responseHeaders,
      whenGone: (end) => void (isGone(response) ? end() : response.on("close", end)),
    });
    return { messages, encode: compression.response ? packed(compression.response) : plain };
  }

  return async (request, response, caller) => {
    const headers = new Headers();
    try {
      const { messages, encode } = await open(request, response, caller, headers);
      for await (const message of messages) {
        const envelope = encode(message);
        const bytes = envelope instanceof Promise ? await envelope : envelope;
        begin(response, headers);
        if (!response.write(bytes)) await taken(response);
      }
      end(response, headers);
    } catch (error) {
      try {
        end(response, headers, statusOf(error));
      } catch (err) {
        giveUp(request, response, err);
      }
    }
  };
}

/** The headers of a request as Connect passes them on. */
function headersOf(fields: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(fields))
    if (!name.startsWith(":")) for (const one of [value ?? []].flat()) headers.append(name, one);
  dropEndlessTimeout(headers);
  return headers;
}

/** The message of a request that must have exactly one. Throws UNIMPLEMENTED otherwise. */
async function only(messages: AsyncIterable<Message>): Promise<Message> {
  const all: Message[] = [];
  for await (const message of messages) {
    if (all.push(message) > 1) break;
  }
  const [first] = all;
  if (!first) throw misused("missing");
  if (all.length > 1) throw misused("received extra");
  return first;
}
const misused = (how: string) =>
  new ConnectError(`protocol error: ${how} input message for server-streaming method`, Code.Unimplemented);

async function pack(envelope: Uint8Array, compression: Compression): Promise<Uint8Array> {
  const plain = { flags: 0, data: envelope.subarray(PREFIX_BYTES) as Uint8Array<ArrayBuffer> };
  const { flags, data } = await envelopeCompress(plain, compression, COMPRESSED_BYTES);
  return encodeEnvelope(flags, data);
}

/** Resolves when more may be written, or when the response is closed. */
function taken(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const events = ["drain", "close"] as const;
  const done = () => {
    for (const event of events) response.off(event, done);
    resolve();
  };
  for (const event of events) response.once(event, done);
  if (isGone(response)) done();
  return promise;
}

function begin(response: ServerResponse, headers: Headers): void {
  if (response.headersSent) return;
  response.setHeader("content-type", contentTypeProto);
  for (const [name, value] of headers) response.appendHeader(name, value);
  response.writeHead(200);
}

function end(response: ServerResponse, headers: Headers, error?: ConnectError): void {
  const trailers = setTrailerStatus(new Headers(), error);
  begin(response, headers);
  response.addTrailers(Object.fromEntries(trailers));
  response.end();
}

function statusOf(error: unknown): ConnectError {
  if (!(error instanceof ConnectError)) return new ConnectError("internal error", Code.Internal);
  return Object.assign(error, { rawMessage: sayable(error.rawMessage) });
}
