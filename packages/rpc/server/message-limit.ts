/** Limits the size of messages: a larger one is refused as soon as its size is known. */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { readBody } from "connect-transcoder/request/body";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { growRequest, TOO_MANY_UNDER_WAY } from "../http/request-budget.ts";

/** Largest message of any RPC, in either direction and also after decompression. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** In gRPC, gRPC-Web and streaming Connect, each message follows one byte of flags and four bytes of its length. */
export const PREFIX_BYTES = 5;

/**
 * Limits the messages of a call, whose body is that of the request. Removes Content-Length, for Connect would refuse a large
 * one with an error of its own, without a reason.
 */
export function limitCall<C extends UniversalServerRequest>(
  call: C,
  body: Readable,
  maxBytes: number,
  errors: ErrorCatalogue,
): C {
  const announced = Number(call.header.get("content-length") ?? 0);
  call.header.delete("content-length");
  return { ...call, body: limitMessages(body, call.header.get("content-type") ?? "", maxBytes, errors, announced) };
}

/** Pieces of a message that are kept one by one. Each takes some 400 bytes, and may be a chunk or a frame of one byte. */
const FEW_PIECES = 64;

/**
 * Yields the body of a request in few pieces; `announced` is its Content-Length. Fails with PAYLOAD_TOO_LARGE as soon as a
 * message is known to exceed the limit, or the whole body if by its content type it is one bare message. The rest is then read
 * and dropped, for some clients look for the response only after sending everything. Fails with CANCELLED if the caller has
 * gone: over HTTP/2 its cut message would look complete.
 */
export async function* limitMessages(
  body: Readable,
  contentType: string,
  maxBytes: number,
  errors: ErrorCatalogue,
  announced = 0,
): AsyncIterable<Uint8Array> {
  const grow = (bytes: number) => {
    if (!growRequest(body, bytes)) throw errors.rpcError("OVERLOADED", TOO_MANY_UNDER_WAY);
  };
  try {
    if (isEnveloped(contentType)) yield* envelopes();
    else yield await readBody(body, bareMessage());
    if ((body as Partial<IncomingMessage>).aborted) throw new ConnectError("the caller has gone", Code.Canceled);
  } finally {
    body.resume();
  }

  function bareMessage() {
    if (announced > maxBytes) throw tooLarge(errors, maxBytes);
    return (piece: Buffer, length: number) => {
      if (length > maxBytes) throw tooLarge(errors, maxBytes);
      grow(piece.length);
    };
  }

  async function* envelopes() {
    const measure = measureEnvelopes();
    let pieces: Buffer[] = [];
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      const { largest, isWhole } = measure(chunk);
      if (largest > maxBytes) throw tooLarge(errors, maxBytes);
      grow(largest); // Connect makes room for a message as soon as it is announced.
      if (pieces.push(chunk) < FEW_PIECES && !isWhole) continue;
      yield Buffer.concat(pieces);
      pieces = [];
    }
    if (pieces.length > 0) yield Buffer.concat(pieces);
  }
}

/**
 * Messages that are decompressed at a time, for all requests. Each takes megabytes outside the heap, however few its
 * compressed bytes: for Brotli's window and for the output. By default libuv has no more threads for it.
 */
export const UNPACKED_AT_A_TIME = 4;

let unpacking = 0;
const waiting: (() => void)[] = [];

/** Calls `unpack` when fewer than `UNPACKED_AT_A_TIME` run, in order of arrival. */
async function inTurn<T>(unpack: () => Promise<T>): Promise<T> {
  if (unpacking < UNPACKED_AT_A_TIME) unpacking++;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  try {
    return await unpack();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else unpacking--;
  }
}

/** A compression that decompresses a few messages at a time, and fails with PAYLOAD_TOO_LARGE if one exceeds the limit. */
export const limitUnpacked =
  (errors: ErrorCatalogue) =>
  (compression: Compression): Compression => ({
    ...compression,
    async decompress(bytes, maxBytes) {
      try {
        return await inTurn(() => compression.decompress(bytes, maxBytes));
      } catch (error) {
        throw ConnectError.from(error).code === Code.ResourceExhausted ? tooLarge(errors, maxBytes) : error;
      }
    },
  });

/** The error for a message of more than `maxBytes`. */
export const tooLarge = ({ rpcError }: ErrorCatalogue, maxBytes: number) =>
  rpcError("PAYLOAD_TOO_LARGE", `The message is larger than ${maxBytes} bytes.`);

const isEnveloped = (contentType: string): boolean => /^application\/(grpc|connect\+)/i.test(contentType);

/** Returns the largest message length announced in a chunk, and whether the last message is all there. */
function measureEnvelopes() {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  let prefixBytes = 0;
  let messageBytesLeft = 0;
  return (chunk: Uint8Array) => {
    let largest = 0;
    for (let at = 0; at < chunk.length; ) {
      if (messageBytesLeft > 0) {
        const skipped = Math.min(messageBytesLeft, chunk.length - at);
        messageBytesLeft -= skipped;
        at += skipped;
        continue;
      }
      prefix[prefixBytes++] = chunk[at++] as number;
      if (prefixBytes < PREFIX_BYTES) continue;
      prefixBytes = 0;
      messageBytesLeft = prefix.readUInt32BE(1);
      largest = Math.max(largest, messageBytesLeft);
    }
    return { largest, isWhole: prefixBytes === 0 && messageBytesLeft === 0 };
  };
}
