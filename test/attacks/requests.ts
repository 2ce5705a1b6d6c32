/** Requests as bytes, to be sent over raw sockets. */
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  FrameType,
  frame,
  headers,
  PREFACE,
  settings,
  streams,
} from "../../packages/rpc/fixtures/frames.ts";
import type { Target } from "./flood.ts";

export const LIST = `/${PetService.typeName}/ListPets`;
export const CREATE = `/${CategoryService.typeName}/CreateCategory`;
export const CREATE_PET = `/${PetService.typeName}/CreatePet`;
export const listPath = (limit: number) =>
  `${LIST}?connect=v1&encoding=json&message=${encodeURIComponent(JSON.stringify({ limit }))}`;

/** What an HTTP/2 client sends first. */
export const begin = Buffer.concat([PREFACE, settings()]);

const INITIAL_WINDOW_SIZE = 4;
/** What a client sends first that takes no answer. */
export const closedWindow = Buffer.concat([PREFACE, settings([INITIAL_WINDOW_SIZE, 0])]);
/** What a client sends first that takes answers of any size. */
export const hugeWindow = Buffer.concat([
  PREFACE,
  settings([INITIAL_WINDOW_SIZE, 2 ** 31 - 1]),
  frame({ type: FrameType.WINDOW_UPDATE, payload: Buffer.from([0x7f, 0, 0, 0]) }),
]);

/** What a process answers most to. */
export const LARGE: Record<Target, string> = { gateway: "/pets?limit=100", pet: listPath(100) };

/** The largest answer that the gateway makes once. */
export const DOCS_PAGE = "/docs";

export type Body = Buffer | string;

/** HTTP/1.1. */
export function http1(line: string, type?: string, body: Body = ""): Buffer {
  const about = type === undefined ? "" : `content-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  return Buffer.concat([Buffer.from(`${line} HTTP/1.1\r\nhost: localhost\r\n${about}\r\n`), Buffer.from(body)]);
}

/** The head of an HTTP/1.1 request whose body comes in chunks. */
export const http1Chunked = (line: string, type: string): Buffer =>
  Buffer.from(`${line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`);

export const fields = (method: string, path: string, type?: string): Field[] => [
  [":method", method],
  [":scheme", "http"],
  [":path", path],
  [":authority", "localhost"],
  ["te", "trailers"],
  ...(type === undefined ? [] : [["content-type", type] as const]),
];

/** HTTP/2, one request on each of the streams, behind the preface. */
export function http2(method: string, path: string, count: number, type?: string, body: Body = ""): Buffer {
  const request = (stream: number) =>
    type === undefined
      ? [headers(stream, fields(method, path))]
      : [headers(stream, fields(method, path, type), END_HEADERS), data(stream, body, END_STREAM)];
  return Buffer.concat(streams(count).flatMap(request));
}

export const data = (stream: number, body: Body, flags = 0): Buffer =>
  frame({ type: FrameType.DATA, flags, stream, payload: Buffer.from(body) });
