/** How answers are sent: to requests that no handler sees, before all of a request is there, and until they are over. */
import { type IncomingMessage, ServerResponse } from "node:http";
import { constants, Http2ServerResponse } from "node:http2";
import type { Readable } from "node:stream";
import { isGone } from "connect-transcoder/http";
import { connectionOf, type Request } from "./connections.ts";

/** To a request that no handler sees. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A line of text, for a request that is in no protocol with errors of its own. */
export const inWords = (status: number, words: string, more: Readonly<Record<string, string>> = {}): PlainAnswer => ({
  status,
  headers: { "content-type": "text/plain", ...more },
  body: Buffer.from(`${words}\n`),
});

/** Drops the rest of the request, so that its client goes on to read the response. */
export function answerPlainly(request: IncomingMessage, response: ServerResponse, answer: PlainAnswer): void {
  const { status, headers, body } = answer;
  request.resume();
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  // Trailers-Only is one frame: gRPC's own clients see no status if an empty frame follows to end the stream.
  if (body.length === 0) return void response.end();
  // Over HTTP/2 Node does not add it, and curl 7.88 fails where it has sent a part of its request and must wait for the end.
  response.setHeader("content-length", body.length);
  response.end(body);
}

/** Most bytes that are dropped. The time for them is that for the arrival of any request. */
const DROPPED_BYTES = 64 * 1024 * 1024;

/**
 * Up to this length the connection is kept, for reading the rest costs less than a new connection, and the answer waits for
 * the rest, as that of Go's server does. Clients such as connect-go stop sending when an answer begins, and then close the
 * connection, for a request cut short can't be followed by another: they lose the answer.
 */
const KEPT_BYTES = 256 * 1024;

const answered = new WeakSet<IncomingMessage>();

/** Whether the answer to a request has begun although its body still comes. */
export const isAnswered = (request: IncomingMessage): boolean => answered.has(request) && !request.complete;

/**
 * A response of HTTP/1.1. When it is ended it is written whole, but it ends no sooner than its request: a connection that is
 * closed while bytes still come is reset, and its client loses what it has not read yet. So the rest of the request is read and
 * dropped first (RFC 9112, 9.6).
 */
export class LingeringResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  #isContinued = false;
  #isEnded = false;

  static {
    // In Node's types it is a property, which can't be overridden by an accessor.
    Object.defineProperty(LingeringResponse.prototype, "writableEnded", {
      get(this: LingeringResponse) {
        return this.#isEnded || Reflect.get(ServerResponse.prototype, "writableEnded", this);
      },
    });
  }

  override writeContinue(...callback: (() => void)[]): void {
    this.#isContinued = true;
    super.writeContinue(...callback);
  }

  override writeHead(...head: unknown[]): this {
    if (this.#isEarly()) {
      answered.add(this.req);
      if (lengthOf(this.req) > KEPT_BYTES) this.setHeader("connection", "close");
      else {
        // An answer that is written whole in one turn, as refusals are, is held until `end` has read the rest; others go out.
        this.cork();
        setImmediate(() => this.writableEnded || this.uncork());
      }
    }
    return super.writeHead(...((this.#saysClose(head) ? this.#closing(head) : head) as [number]));
  }

  #saysClose(head: readonly unknown[]): boolean {
    return isClose(this.getHeader("connection")) || head.some((part) => isFields(part) && isClose(connectionIn(part)));
  }

  /** What follows on a connection is not served (RFC 9112, 9.6). Where it has begun, this can't be the last answer. */
  #closing(head: readonly unknown[]): readonly unknown[] {
    const connection = connectionOf(this.req);
    if (!connection) return head;
    if (connection.newest === undefined || connection.newest === this) {
      connection.isLast = true;
      return head;
    }
    this.removeHeader("connection");
    const isOther = ([name]: [string, unknown]) => !isConnection(name);
    return head.map((part) => (isFields(part) ? Object.fromEntries(Object.entries(part).filter(isOther)) : part));
  }

  override end(...last: unknown[]): this {
    if (this.#isEnded || !this.#isEarly()) return super.end(...(last as [unknown]));
    this.#isEnded = true;
    const [chunk, encoding = "utf8"] = last.filter((one) => typeof one !== "function") as [
      Uint8Array?,
      BufferEncoding?,
    ];
    const whenEnded = last.find((one) => typeof one === "function") as (() => void) | undefined;
    if (chunk && !this.headersSent) this.setHeader("content-length", Buffer.byteLength(chunk, encoding));
    if (chunk) this.write(chunk, encoding);
    else this.flushHeaders();
    dropRest(this.req, () => super.end(whenEnded));
    return this;
  }

  /** Whether bytes of the request are on their way. A client that waits for "100 Continue" sends none. */
  #isEarly(): boolean {
    const { complete, destroyed, headers } = this.req;
    return !complete && !destroyed && lengthOf(this.req) > 0 && (this.#isContinued || headers.expect === undefined);
  }
}

const isFields = (part: unknown): part is Record<string, unknown> =>
  typeof part === "object" && part !== null && !Array.isArray(part);
const CONNECTION = "connection";
const isConnection = (name: string): boolean => name.length === CONNECTION.length && name.toLowerCase() === CONNECTION;
const isClose = (value: unknown): boolean => value !== undefined && `${value}`.toLowerCase() === "close";

/** Every answer passes here, so nothing is made of its fields. */
function connectionIn(fields: Record<string, unknown>): unknown {
  for (const name in fields) if (isConnection(name)) return fields[name];
  return undefined;
}

/**
 * A response of HTTP/2. By itself Node would reset its stream without an error (RFC 9113, 8.1), and clients such as curl 7.88
 * then lose the answer.
 */
export class DroppingResponse extends Http2ServerResponse {
  override end(...last: unknown[]): this {
    super.end(...(last as [string]));
    const { req: request, stream } = this;
    if (!request.complete && !stream.endAfterHeaders) dropRest(request, () => stream.close(constants.NGHTTP2_NO_ERROR));
    return this;
  }
}

/** The length of a body; infinite if it is not announced. */
const lengthOf = ({ headers }: IncomingMessage): number =>
  headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Number.POSITIVE_INFINITY;

/** By `read`, for a reader that stopped without a word may have left its listener, and then nothing flows. */
function dropRest(request: Readable, done: () => void): void {
  let bytes = 0;
  const drop = () => {
    for (let chunk = request.read(); chunk !== null; chunk = request.read()) bytes += chunk.length;
    if (bytes > DROPPED_BYTES) stop();
  };
  const stop = () => {
    request.off("readable", drop).off("close", stop);
    done();
  };
  request.on("readable", drop).once("close", stop);
  drop();
}

/**
 * Sends "100 Continue", for which clients wait that don't want to send a body in vain (RFC 9110, 10.1.1), when the body is
 * first wanted. A request that is refused before gets nothing but the refusal.
 */
export function continueWhenRead(request: Request, response: ServerResponse): void {
  const wanted = (event: string | symbol) => {
    if (event !== "data" && event !== "readable") return;
    request.off("newListener", wanted);
    // For a stream that was reset together with its request, Node's answer throws, and nothing would catch that.
    if (!response.headersSent && !request.stream?.destroyed && !request.stream?.closed) response.writeContinue();
  };
  request.on("newListener", wanted);
}

/** The status of a request that got no answer because its caller left, as nginx has it. */
export const CALLER_LEFT = 499;

/** Calls `closed` when the answer of a request is closed. */
export function whenClosed({ stream }: Request, response: ServerResponse, closed: () => void): void {
  // Node does not report the close of a HEAD response over HTTP/2 that its handler has not ended.
  (stream ?? response).once("close", closed);
}

/** Calls `end` once, when the answer is over: with its status, or `CALLER_LEFT` if it had not begun. */
export function whenOver(request: Request, response: ServerResponse, end: (status: number) => void): void {
  const over = () => end(response.headersSent ? response.statusCode : CALLER_LEFT);
  if (isGone(response)) over();
  else whenClosed(request, response, over);
}
