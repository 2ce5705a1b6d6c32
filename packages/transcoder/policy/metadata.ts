/** Which headers of a request reach the service as metadata, and which metadata of its answer reaches the caller. */
import type { IncomingHttpHeaders } from "node:http";
import { fieldError } from "../errors/http-error.ts";
import { REQUEST_ID_HEADER } from "../request/request-id.ts";

export interface MetadataOptions {
  /**
   * Headers of requests that are passed on to services under their own names, beside `Authorization`, which always is. One
   * whose name ends in `-bin` has to be base64.
   */
  readonly allowHeaders?: readonly string[] | undefined;
  /** Metadata of answers, leading or trailing, that callers get as headers of the same names, such as `Set-Cookie`. */
  readonly allowResponseHeaders?: readonly string[] | undefined;
  /**
   * The habit of grpc-gateway: the header `Grpc-Metadata-X` of a request is passed on as the metadata `x`, and callers get all
   * metadata of an answer as `Grpc-Metadata-*`, its trailers as `Grpc-Trailer-*`. By default neither.
   */
  readonly grpcMetadata?: boolean | undefined;
}

const PREFIX = "grpc-metadata-";
const TRAILER_PREFIX = "grpc-trailer-";

/** Names that belong to one connection, to the form of one message, or to the protocols of RPCs. */
const RESERVED =
  /^(?:connection|keep-alive|proxy-.*|te|trailers?|transfer-encoding|upgrade|http2-settings|host|expect|content-(?:type|length|encoding)|accept-encoding|date|grpc-.*|connect-.*|trailer-.*|:.*)$/;

/** What the gateway says of itself in its own calls. */
const OWN: readonly string[] = [REQUEST_ID_HEADER, "accept", "user-agent"];

/** https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md: names and values of metadata. */
const NAME = /^(?!__proto__$)[a-z\d_.-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
const BASE64 = /^[A-Za-z\d+/]*={0,2}$/;

/** What the transcoder itself says in every answer. */
const SAID: readonly string[] = [REQUEST_ID_HEADER, "api-version", "x-content-type-options", "vary"];

/** @throws Error when a name on the list is not one of metadata, or can't be passed on */
function listed(option: string, names: readonly string[], own: readonly string[]): string[] {
  return names.map((given) => {
    const name = given.toLowerCase();
    if (!NAME.test(name))
      throw new Error(`${option}: "${given}" is no name of metadata: letters, digits, "_", "." and "-"`);
    if (RESERVED.test(name)) throw new Error(`${option}: ${given} belongs to the connection or the protocol`);
    if (own.includes(name)) throw new Error(`${option}: ${given} is set by the transcoder itself`);
    return name;
  });
}

/**
 * Compiles what is passed on of the headers of a request.
 *
 * @throws Error when a name can't be on the list
 */
export function requestMetadata({ allowHeaders = [], grpcMetadata = false }: MetadataOptions) {
  const names = new Set(["authorization", ...listed("allowHeaders", allowHeaders, [REQUEST_ID_HEADER])]);
  /** @throws HttpError INVALID_HEADER for a value that metadata can't have */
  return (headers: IncomingHttpHeaders): Record<string, string> => {
    const found: Record<string, string> = Object.create(null); // any name is free
    for (const name of names) {
      const value = headers[name];
      if (value !== undefined) found[name] = checked(name, name, String(value));
    }
    if (!grpcMetadata) return found;
    for (const header in headers) {
      if (!header.startsWith(PREFIX)) continue;
      const name = header.slice(PREFIX.length);
      if (!NAME.test(name)) throw fieldError("INVALID_HEADER", header, "does not end in a name of metadata");
      if (RESERVED.test(name) || OWN.includes(name))
        throw fieldError("INVALID_HEADER", header, `${name} can't be set by a caller`);
      if (name in found) throw fieldError("INVALID_HEADER", header, `is given as ${name}, too`);
      found[name] = checked(header, name, String(headers[header]));
    }
    return found;
  };
}

function checked(header: string, name: string, value: string): string {
  if (!VALUE.test(value)) throw fieldError("INVALID_HEADER", header, "must be ASCII");
  // A header that was sent several times comes with commas between its values.
  if (name.endsWith("-bin") && !value.split(",").every((part) => BASE64.test(part.trim())))
    throw fieldError("INVALID_HEADER", header, "must be base64");
  return value;
}

/** Headers of an answer. Only `Set-Cookie` can have several values that a comma must not join. */
export type ResponseHeaders = Record<string, string | string[]>;

/**
 * Compiles what callers get of the metadata of an answer; undefined if they get none.
 *
 * @throws Error when a name can't be on the list
 */
export function responseMetadata({ allowResponseHeaders = [], grpcMetadata = false }: MetadataOptions) {
  const names = listed("allowResponseHeaders", allowResponseHeaders, SAID);
  if (names.length === 0 && !grpcMetadata) return undefined;
  return (header: Headers, trailer = new Headers()): ResponseHeaders => {
    const found: ResponseHeaders = {};
    const prefixed = (prefix: string, metadata: Headers) =>
      metadata.forEach((value, name) => {
        if (RESERVED.test(name)) return;
        const before = found[prefix + name];
        found[prefix + name] = before === undefined ? sendable(value) : `${before}, ${sendable(value)}`;
      });
    if (grpcMetadata) {
      prefixed(PREFIX, header);
      prefixed(TRAILER_PREFIX, trailer);
    }
    for (const name of names) {
      const from = header.has(name) ? header : trailer;
      const values = name === "set-cookie" ? from.getSetCookie() : [from.get(name) ?? []].flat();
      if (values.length > 0) found[name] = values.map(sendable);
    }
    return found;
  };
}

/** Node does not send control characters: they are written in percent signs, as gRPC does in `grpc-message`. */
const sendable = (value: string): string => value.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, encodeURIComponent);
