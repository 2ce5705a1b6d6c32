/**
 * Calls gRPC services. A call with one request and one answer goes straight to Node's HTTP/2, which takes half the processor time
 * of connect-node's chain of async iterables; streams and all that is not a plain success are read by Connect.
 */
import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type SecureClientSessionOptions,
} from "node:http2";
import { create, type DescMessage, fromBinary, isMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { createAsyncIterable, encodeEnvelope } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-grpc";
import { compressionBrotli, compressionGzip, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { after } from "../server/after.ts";

export interface GrpcOptions {
  readonly baseUrl: string;
  readonly nodeOptions?: SecureClientSessionOptions;
  /** Most bytes of an answer's message. */
  readonly readMaxBytes: number;
}

/** Before each message: whether it is compressed, and its length. */
const PREFIX_BYTES = 5;

/**
 * `maxSessionMemory` is in megabytes: Node resets answers that come while more than that waits to be sent, 10 by default, and the
 * gateway's port bounds the bodies. Calls wait for a service's word on how many it takes at a time.
 */
const SESSION = { maxSessionMemory: 4096, peerMaxConcurrentStreams: 1 };

const acceptCompression = [compressionGzip, compressionBrotli];

/** All calls share a connection, which is made when there is none. */
export function grpcTransport({ baseUrl, nodeOptions, readMaxBytes }: GrpcOptions): Transport {
  const sessionManager = new Http2SessionManager(baseUrl, undefined, { ...SESSION, ...nodeOptions });
  const streams = createGrpcTransport({ baseUrl, sessionManager, readMaxBytes, acceptCompression });
  const prefix = new URL(baseUrl).pathname.replace(/\/$/, "");
  return {
    stream: (...call) => streams.stream(...call),
    async unary<I extends DescMessage, O extends DescMessage>(
      ...[method, signal, timeoutMs, given, input]: Parameters<typeof streams.unary<I, O>>
    ): Promise<UnaryResponse<I, O>> {
      const message = isMessage(input, method.input) ? input : create(method.input, input);
      const headers = {
        "user-agent": "connect-transcoder",
        ...(given && plain(given)),
        "content-type": "application/grpc+proto",
        te: "trailers",
        "grpc-accept-encoding": "gzip,br",
        ...(timeoutMs !== undefined && timeoutMs > 0 && { "grpc-timeout": timeoutText(timeoutMs) }),
      };
      const path = `${prefix}/${method.parent.typeName}/${method.name}`;
      const opening = sessionManager.request("POST", path, headers, {});
      const request = encodeEnvelope(0, toBinary(method.input, message));
      const answered = await exchange(opening, request, signal, timeoutMs, PREFIX_BYTES + readMaxBytes);
      const output = messageOf(method.output, answered);
      const [header, trailer] = [toHeaders(answered.headers), toHeaders(answered.trailers)];
      if (output) return { stream: false, service: method.parent, method, header, message: output, trailer };
      // Connect's own client reads a failure, what is compressed, and what breaks the protocol.
      const answer = { status: Number(answered.headers[":status"]), header, trailer };
      return createTransport({
        httpClient: async () => ({ ...answer, body: createAsyncIterable([...answered.body]) }),
        ...{ baseUrl, readMaxBytes, acceptCompression, interceptors: [], useBinaryFormat: true },
        ...{ sendCompression: null, compressMinBytes: 1024, writeMaxBytes: 2 ** 32 - 1 },
      }).unary(method, undefined, undefined, undefined, message);
    },
  };
}

/** Creating Headers costs more than all else that is done with them. */
const plain = (given: HeadersInit): Record<string, string> =>
  Object.getPrototypeOf(given) === Object.prototype
    ? (given as Record<string, string>)
    : Object.fromEntries(new Headers(given));

/** At most eight digits, so long times are in seconds. */
const timeoutText = (ms: number): string =>
  ms < 1e8 ? `${Math.ceil(ms)}m` : `${Math.min(Math.ceil(ms / 1000), 99_999_999)}S`;

/** What a service answered: all of it, or as much as may be read. */
interface Answered {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly body: readonly Buffer[];
  readonly trailers: IncomingHttpHeaders;
}

/** Sends a request and reads its answer, up to so many bytes. Whatever ends it early cancels the call at the service. */
function exchange(
  opening: Promise<ClientHttp2Stream>,
  request: Uint8Array,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
  maxBytes: number,
): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  let stream: ClientHttp2Stream | undefined;
  let isOver = false;
  const end = () => {
    isOver = true;
    cancelTimer?.();
    signal?.removeEventListener("abort", abort);
  };
  const fail = (error: ConnectError) => {
    if (isOver) return;
    end();
    reject(error);
    stream?.close(constants.NGHTTP2_CANCEL);
  };
  const abort = () => fail(ConnectError.from(signal?.reason, Code.Canceled));
  const cancelTimer =
    timeoutMs !== undefined && timeoutMs > 0
      ? after(timeoutMs, () => fail(new ConnectError("the operation timed out", Code.DeadlineExceeded)))
      : undefined;
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort);
  opening.then(send, (error) => fail(failureOf(error, undefined)));
  return promise;

  function send(opened: ClientHttp2Stream): void {
    stream = opened;
    const { session } = opened;
    const body: Buffer[] = [];
    let headers: Answered["headers"] = {};
    let trailers: IncomingHttpHeaders = {};
    let length = 0;
    const complete = () => {
      if (isOver) return;
      end();
      resolve({ headers, body, trailers });
      // A service may answer without reading the request, and leave the stream open.
      if (!opened.writableFinished) opened.close(constants.NGHTTP2_CANCEL);
    };
    opened.on("error", (error) => fail(failureOf(error, opened.rstCode)));
    if (isOver) return void opened.close(constants.NGHTTP2_CANCEL);
    opened.on("response", (received) => {
      headers = received;
    });
    opened.on("trailers", (received) => {
      trailers = received;
    });
    opened.on("data", (chunk: Buffer) => {
      body.push(chunk);
      length += chunk.length;
      if (length <= maxBytes) return;
      complete();
      opened.close(constants.NGHTTP2_CANCEL);
    });
    opened.on("end", () => {
      if ((trailers["grpc-status"] ?? headers["grpc-status"]) !== undefined) complete();
    });
    // A stream without a status may have been reset, which it tells after its end.
    opened.on("close", () => {
      if (opened.rstCode === constants.NGHTTP2_NO_ERROR && headers[":status"] !== undefined) complete();
      else if (session?.destroyed) fail(new ConnectError("the connection broke", Code.Unavailable));
      else fail(failureOf(new Error("the service reset the stream"), opened.rstCode));
    });
    opened.end(request);
  }
}

/** https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors; others are internal errors. */
const RESETS: Readonly<Record<number, Code>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: Code.Unavailable,
  [constants.NGHTTP2_CANCEL]: Code.Canceled,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: Code.ResourceExhausted,
  [constants.NGHTTP2_INADEQUATE_SECURITY]: Code.PermissionDenied,
};

/** Connections that break, or can't be made. */
const BROKEN: readonly unknown[] = ["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"];

function failureOf(error: Error & { readonly code?: unknown }, rstCode: number | undefined): ConnectError {
  if (error instanceof ConnectError) return error;
  const code = BROKEN.includes(error.code) ? Code.Unavailable : (RESETS[rstCode ?? 0] ?? Code.Internal);
  return new ConnectError(error.message, code, undefined, undefined, error);
}

/** The message of a plain success, else undefined. */
function messageOf<O extends DescMessage>(desc: O, { headers, body, trailers }: Answered): MessageShape<O> | undefined {
  const isPlain =
    headers[":status"] === 200 &&
    /^application\/grpc(?:\+proto)?$/.test(headers["content-type"] ?? "") &&
    headers["grpc-status"] === undefined &&
    trailers["grpc-status"] === "0";
  if (!isPlain) return undefined;
  const all = body.length === 1 ? (body[0] as Buffer) : Buffer.concat(body);
  if (all.length < PREFIX_BYTES || all[0] !== 0 || all.readUInt32BE(1) !== all.length - PREFIX_BYTES) return undefined;
  try {
    return fromBinary(desc, all.subarray(PREFIX_BYTES));
  } catch {
    return undefined;
  }
}

function toHeaders(fields: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const name of Object.keys(fields)) {
    if (name.startsWith(":")) continue;
    for (const value of [fields[name] ?? []].flat()) headers.append(name, value);
  }
  return headers;
}
