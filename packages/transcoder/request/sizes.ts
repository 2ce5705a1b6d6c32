import type { FastifyRequest } from "fastify";
import { HttpError } from "../errors/http-error.ts";

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
