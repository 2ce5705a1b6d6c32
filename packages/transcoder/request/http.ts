/** What Node leaves to the readers of a request: method, target, host, transfer coding, sizes, and the body in pieces. */
import { type IncomingMessage, METHODS } from "node:http";
import { isIPv6 } from "node:net";
import { finished, type Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { HttpError } from "../errors/http-error.ts";

/** Over HTTP/1.1 node's parser refuses all others; HTTP/2 brings any. */
const known = new Set(METHODS);
const asSent = new WeakMap<IncomingMessage, string>();

/** What the router takes an unregistered method for: it knows this one, and few routes have it. */
const STAND_IN = "TRACE";

/** Fastify's router knows methods by name and has no answer for others, so an unregistered one is routed as another. */
export function makeRoutable(request: IncomingMessage): void {
  const { method = "" } = request;
  if (known.has(method)) return;
  asSent.set(request, method);
  request.method = STAND_IN;
}

/** The method that a request was sent with. */
export const methodOf = (request: IncomingMessage): string =>
  (request.method === STAND_IN ? asSent.get(request) : undefined) ?? request.method ?? "";

/** Gives a request its own method back once it is routed. */
export function restoreMethod(request: IncomingMessage): void {
  if (request.method === STAND_IN) request.method = methodOf(request);
}

/** Path and query of a request target as they were sent; the form with scheme and host (RFC 9112, 3.2.2) is cut down. */
export function splitTarget(target: string): { path: string; query: string } {
  if (target.startsWith("/") && !target.includes("#")) {
    const at = target.indexOf("?"); // nearly always: no scheme, no host, no fragment
    return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at + 1) };
  }
  const [, path = "", query = ""] = /^(?:https?:\/\/[^/?#]*)?([^?#]*)\??([^#]*)/is.exec(target) ?? [];
  return { path: path === "" ? "/" : path, query };
}

/** A host, with or without a port: nothing that a URL could read as a user, a path or a query. Linear. */
export const isHost = (text: string): boolean => /^[^\s/?#@\\]+$/.test(text) && URL.canParse(`http://${text}`);

/**
 * Puts an IPv6 address in brackets. Node's HTTP/2 client leaves them out of `:authority`, where it always names a port:
 * `::1:8080` is `[::1]:8080`.
 */
export function withBrackets(authority: string): string {
  const colon = authority.lastIndexOf(":");
  const host = authority.slice(0, colon);
  return isIPv6(host) ? `[${host}]${authority.slice(colon)}` : authority;
}

/** The host that a target names by itself, in absolute form (RFC 9112, 3.2.2): it counts instead of `Host`. */
export const hostInTarget = (target = "/"): string | undefined =>
  target.startsWith("/") ? undefined : /^https?:\/\/([^/?#]*)/i.exec(target)?.[1];

/**
 * What is wrong with the Host of a request (RFC 9110, 7.2; RFC 9113, 8.3.1), in words that follow it; undefined when nothing
 * is. HTTP/1.1 names its host in one `Host`, also beside a target that names one, HTTP/2 in `:authority`, in `Host`, or in
 * both if they agree. HTTP/1.0 may leave it out.
 */
export function hostProblem({
  httpVersion,
  rawHeaders,
  url,
}: Pick<IncomingMessage, "httpVersion" | "rawHeaders" | "url">) {
  let authority: string | undefined;
  let host: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (isNamed(name, "host")) {
      if (host !== undefined) return "must be given once";
      host = rawHeaders[i + 1];
    } else if (isNamed(name, ":authority")) {
      if (authority !== undefined) return "must be given once";
      authority = withBrackets(rawHeaders[i + 1] as string);
    }
  }
  const named = authority ?? host;
  if (named === undefined && httpVersion !== "1.0") return "must be given once";
  if (host !== undefined && host !== named) return "must not differ from :authority";
  const inTarget = hostInTarget(url);
  const isWrong = (text: string | undefined) => text !== undefined && !isHost(text);
  return isWrong(named) || isWrong(inTarget) ? "must be a host name or an address, with or without a port" : undefined;
}

const isNamed = (name: string, lowerCase: string): boolean =>
  name.length === lowerCase.length && name.toLowerCase() === lowerCase;

/**
 * Why a body can't be read as it is transferred (RFC 9112, 6.1 and 7); undefined if it can. Node reads chunks, and leaves what
 * they carry in other codings as it is.
 */
export function transferProblem({ headers }: Pick<IncomingMessage, "headers">): string | undefined {
  const codings = headers["transfer-encoding"];
  if (codings === undefined || /^chunked$/i.test(codings)) return undefined;
  return "Transfer-Encoding: the only coding is chunked. Send the body as it is, in chunks or with a Content-Length.";
}

export interface SizeLimits {
  /** Most characters of the request target. */
  readonly urlBytes: number;
  /** Most bytes of all header fields together. */
  readonly headerBytes: number;
}

/** @throws HttpError URI_TOO_LONG, HEADERS_TOO_LARGE */
export function checkSizes({ originalUrl, raw }: FastifyRequest, { urlBytes, headerBytes }: SizeLimits): void {
  if (originalUrl.length > urlBytes)
    throw new HttpError("URI_TOO_LONG", `The request target is longer than ${urlBytes} bytes.`);
  const PUNCTUATION = 2; // ": " or CR LF, one pair for each name and each value
  const { rawHeaders } = raw;
  let size = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i] as string, rawHeaders[i + 1] as string];
    // HTTP/2 has the request line among them, in names that no field has (RFC 9113, 8.3).
    if (!name.startsWith(":")) size += name.length + value.length + 2 * PUNCTUATION;
  }
  if (size > headerBytes)
    throw new HttpError("HEADERS_TOO_LARGE", `The header fields are larger than ${headerBytes} bytes.`);
}

/** What node's own parser has to take, so that the limits can be told apart. */
export const parserLimit = ({ urlBytes, headerBytes }: SizeLimits): number => 2 * (urlBytes + headerBytes);

/**
 * Resolves to the whole body. `check` gets each piece, and the length so far. If it throws, the rest is read and dropped, for
 * some clients look for the answer only after sending everything.
 */
export const readBody = (body: Readable, check: (piece: Buffer, length: number) => void): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const whole = growing();
    const add = (piece: Buffer): void => {
      try {
        check(piece, whole.length() + piece.length);
      } catch (error) {
        body.off("data", add).resume();
        reject(error);
        return;
      }
      whole.add(piece);
    };
    body.on("data", add);
    finished(body, { writable: false }, (error) => (error ? reject(error) : resolve(whole.take())));
  });

/**
 * A piece may be a chunk or a frame of one byte, and would take some 400 bytes if it was kept. So each is copied, into room
 * that doubles when it is full.
 */
export function growing() {
  let buffer = Buffer.alloc(0);
  let length = 0;
  return {
    length: () => length,
    add(piece: Uint8Array): void {
      const needed = length + piece.length;
      if (needed > buffer.length) buffer = Buffer.concat([buffer], length === 0 ? needed : 2 * needed);
      buffer.set(piece, length);
      length = needed;
    },
    /** Gives what there is, and begins anew. */
    take(): Buffer {
      const taken = buffer.subarray(0, length);
      buffer = Buffer.alloc(0);
      length = 0;
      return taken;
    },
  };
}
