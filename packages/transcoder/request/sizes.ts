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
  let size = 0;
  for (const text of raw.rawHeaders) size += text.length + PUNCTUATION;
  if (size > headerBytes)
    throw new HttpError("HEADERS_TOO_LARGE", `The header fields are larger than ${headerBytes} bytes.`);
}

/** What node's own parser has to take, so that the limits can be told apart. */
export const parserLimit = ({ urlBytes, headerBytes }: SizeLimits): number => 2 * (urlBytes + headerBytes);
