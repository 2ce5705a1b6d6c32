/** One request and its answer over HTTP/2, as bytes. */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { after } from "../server/after.ts";

/** What a service answered: all of it, or as much as may be read. */
export interface Answered {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly body: readonly Buffer[];
  readonly trailers: IncomingHttpHeaders;
}

interface Bounds {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
  /** Most bytes that are read. */
  readonly maxBytes: number;
}

/** Sends a request and reads its answer. Whatever ends it early cancels the call at the service. */
export function exchange(opening: Promise<ClientHttp2Stream>, request: Uint8Array, bounds: Bounds): Promise<Answered> {
  const { signal, timeoutMs, maxBytes } = bounds;
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
    const hasStatus = () => (trailers["grpc-status"] ?? headers["grpc-status"]) !== undefined;
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
      if (hasStatus()) complete();
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
