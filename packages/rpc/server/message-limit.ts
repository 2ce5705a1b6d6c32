/** How large any message may be, refused as soon as it is known to be larger. */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression, UniversalServerRequest } from "@connectrpc/connect/protocol";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { growRequest } from "../http/request-memory.ts";

/** Largest message of any RPC, in either direction and also after decompression. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Each message of a gRPC, gRPC-Web or streaming Connect body follows one byte of flags and four of its length. */
const PREFIX_BYTES = 5;

/**
 * A call whose body is the request's, with its messages limited. Connect reads a Content-Length, too, and refuses by it in
 * words of its own, without a reason: it doesn't get to see one.
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

/**
 * The body of a request, of which so many bytes are announced. Fails with PAYLOAD_TOO_LARGE as soon as a message is known to
 * exceed the limit, or the whole body if its content type says that it is one bare message. The rest is read and dropped then,
 * for some clients look for the answer only when they have sent everything. Fails with CANCELLED where the caller has gone:
 * over HTTP/2 what it had not sent looks like the end of its message.
 */
export async function* limitMessages(
  body: Readable,
  contentType: string,
  maxBytes: number,
  errors: ErrorCatalogue,
  announced = 0,
): AsyncIterable<Uint8Array> {
  const isEnveloped = /^application\/(grpc|connect\+)/i.test(contentType);
  const measure = isEnveloped ? largestMessage() : total();
  try {
    if (!isEnveloped && announced > maxBytes) throw tooLarge(errors, maxBytes);
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      const bytes = measure(chunk);
      if (bytes > maxBytes) throw tooLarge(errors, maxBytes);
      // Connect makes room for a message as soon as it is announced.
      if (isEnveloped) growRequest(body, bytes);
      yield chunk;
    }
    if ((body as Partial<IncomingMessage>).aborted) throw new ConnectError("the caller has gone", Code.Canceled);
  } finally {
    body.resume();
  }
}

/**
 * Messages that are unpacked at a time, of all requests. Each takes megabytes beside the heap, however few bytes it is
 * packed into: brotli's window and what comes out. There are no more threads for it by default.
 */
export const UNPACKED_AT_A_TIME = 4;

let unpacking = 0;
const waiting: (() => void)[] = [];

/** Unpacks when it is its turn. */
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

/** A way to unpack messages, a few at a time, that fails with PAYLOAD_TOO_LARGE when one turns out to exceed the limit. */
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

/** What a caller is told whose message is larger than that. */
export const tooLarge = ({ rpcError }: ErrorCatalogue, maxBytes: number) =>
  rpcError("PAYLOAD_TOO_LARGE", `The message is larger than ${maxBytes} bytes.`);

/** Bytes seen so far. */
function total() {
  let bytes = 0;
  return (chunk: Uint8Array): number => {
    bytes += chunk.length;
    return bytes;
  };
}

/** The largest length announced in a chunk. */
function largestMessage() {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  let prefixBytes = 0;
  let messageBytesLeft = 0;
  return (chunk: Uint8Array): number => {
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
    return largest;
  };
}
