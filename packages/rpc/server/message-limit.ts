/** Limits the size of messages, and counts the memory that they take. */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { readBody } from "connect-transcoder/http";
import type { ErrorCatalogue } from "../errors.ts";
import { growRequest, TOO_MANY_UNDER_WAY } from "../http/request-budget.ts";

/** In gRPC, gRPC-Web and streaming Connect, each message follows one byte of flags and four bytes of its length. */
export const PREFIX_BYTES = 5;

/**
 * Limits the messages of a call, whose body is that of the request. Removes Content-Length, for Connect would refuse a large
 * one with an error of its own, without a reason.
 */
export function limitCall<C extends UniversalServerRequest>(
  call: C,
  body: Readable,
  { methodKind }: DescMethod,
  maxBytes: number,
  errors: ErrorCatalogue,
): C {
  const { header } = call;
  const announced = Number(header.get("content-length") ?? 0);
  header.delete("content-length");
  const hasOne = methodKind === "unary" || methodKind === "server_streaming";
  const read = () => readMessage(body, header.get("content-type") ?? "", maxBytes, errors, announced);
  return { ...call, body: hasOne ? once(read) : asTheyCome(body, errors) };
}

async function* once<T>(read: () => Promise<T>): AsyncGenerator<T> {
  yield await read();
}

/**
 * Reads the body of a request with one message whole; `announced` is its Content-Length. Rejects with PAYLOAD_TOO_LARGE as soon
 * as it is too large. The rest is then read and dropped, for some clients look for the response only after sending everything.
 * Rejects with CANCELLED if the caller has gone: over HTTP/2 its cut message would look complete.
 */
export async function readMessage(
  body: Readable,
  contentType: string,
  maxBytes: number,
  errors: ErrorCatalogue,
  announced = 0,
): Promise<Buffer> {
  const isEnveloped = /^application\/(grpc|connect\+)/i.test(contentType);
  const most = isEnveloped ? PREFIX_BYTES + maxBytes : maxBytes;
  try {
    if (announced > most) throw tooLarge(errors, maxBytes);
    const bytes = await readBody(body, (piece, length) => {
      if (length > most) throw tooLarge(errors, maxBytes);
      grow(body, piece, errors);
    });
    if ((body as Partial<IncomingMessage>).aborted) throw new ConnectError("the caller has gone", Code.Canceled);
    if (isEnveloped && bytes.length >= PREFIX_BYTES && bytes.readUInt32BE(1) > maxBytes)
      throw tooLarge(errors, maxBytes);
    return bytes;
  } finally {
    body.resume();
  }
}

/** Of a stream of requests, where Connect limits each of them. */
async function* asTheyCome(body: Readable, errors: ErrorCatalogue): AsyncGenerator<Buffer> {
  try {
    for await (const piece of body.iterator({ destroyOnReturn: false })) {
      grow(body, piece, errors);
      yield piece;
    }
  } finally {
    body.resume();
  }
}

function grow(body: Readable, { length }: Buffer, errors: ErrorCatalogue): void {
  if (!growRequest(body, length)) throw errors.rpcError("OVERLOADED", TOO_MANY_UNDER_WAY);
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
const tooLarge = ({ rpcError }: ErrorCatalogue, maxBytes: number) =>
  rpcError("PAYLOAD_TOO_LARGE", `The message is larger than ${maxBytes} bytes.`);
