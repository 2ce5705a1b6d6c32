/**
 * What both ends of a link share: the messages as bytes (gRPC's frames, each one byte of flags, four bytes of length, and a
 * message), how much goes into one, when it is sent, and how headers and failures stand in it.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { REQUEST_ID_HEADER } from "connect-transcoder/request-id";
import { CALLER_HEADER, plainHeaders } from "../call.ts";
import { fromAny, toAny } from "../errors.ts";
import {
  type Answer,
  type AnswerSchema,
  type CallSchema,
  type Failure,
  LinkService,
} from "../gen/link/internal/v1/link_service_pb.ts";
import { MAX_MESSAGE_BYTES } from "../http/limits.ts";
import { PREFIX_BYTES } from "../server/message-limit.ts";

/** The version of the protocol on a link. */
export const LINK_VERSION = 1;

export const LINK_PATH = `/${LinkService.typeName}/${LinkService.method.link.name}`;
export const LINK_CONTENT_TYPE = "application/grpc+proto";

/**
 * Flow-control windows of a link and of its connection: bytes that may be sent before the other side has read any of them
 * (RFC 9113 section 5.2). With HTTP/2's default of 64 KiB a burst of calls would wait for a round trip.
 */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
export const CONNECTION_WINDOW_BYTES = 4 * STREAM_WINDOW_BYTES;

/** Largest message of a link: one call or answer of the largest size that an RPC may have, and 64 KiB for what surrounds it. */
export const MAX_FRAME_BYTES = MAX_MESSAGE_BYTES + 64 * 1024;

/** The other side has violated the protocol of links. Nothing that it sends afterwards can be trusted. */
export class LinkViolation extends Error {
  override readonly name = "LinkViolation";
}

export const toFrame = <D extends DescMessage>(desc: D, message: MessageInitShape<D>): Buffer =>
  Buffer.from(encodeEnvelope(0, toBinary(desc, create(desc, message))).buffer);

/** Reads messages from bytes, however they are cut into chunks. A message in many chunks is copied once. */
export function readFrames<D extends DescMessage>(desc: D, take: (message: MessageShape<D>) => void) {
  let parts: Buffer[] = [];
  let held = 0;
  /** Bytes needed before more can be decoded. */
  let needed = PREFIX_BYTES;

  /** Takes what has arrived, and hands on the messages that are complete. Throws LinkViolation. */
  function read(chunk: Buffer): void {
    parts.push(chunk);
    held += chunk.length;
    if (held < needed) return;
    const bytes = parts.length === 1 ? chunk : Buffer.concat(parts, held);
    let at = 0;
    for (;;) {
      const left = bytes.length - at;
      needed = left < PREFIX_BYTES ? PREFIX_BYTES : PREFIX_BYTES + lengthAt(bytes, at);
      if (left < needed) break;
      // A new view, because a part of a Buffer is a Buffer, and a message holds plain Uint8Arrays.
      const payload = new Uint8Array(bytes.buffer, bytes.byteOffset + at + PREFIX_BYTES, needed - PREFIX_BYTES);
      const message = decode(desc, payload);
      at += needed;
      take(message);
    }
    held = bytes.length - at;
    parts = held > 0 ? [bytes.subarray(at)] : [];
  }
  /** Whether a message has begun to arrive and is not complete. */
  const isWithinFrame = () => held > 0;
  return { read, isWithinFrame };
}

function lengthAt(bytes: Buffer, at: number): number {
  if (bytes[at] !== 0) throw new LinkViolation(`a frame has the flags ${bytes[at]}: links are not compressed`);
  const length = bytes.readUInt32BE(at + 1);
  if (length > MAX_FRAME_BYTES)
    throw new LinkViolation(`a frame says that it has ${length} bytes, more than ${MAX_FRAME_BYTES}`);
  return length;
}

function decode<D extends DescMessage>(desc: D, bytes: Uint8Array): MessageShape<D> {
  try {
    return fromBinary(desc, bytes);
  } catch (cause) {
    throw new LinkViolation(`a frame holds no ${desc.name}`, { cause });
  }
}

/** Most bytes of a message; one that holds a single call or answer may have more. */
const FULL_BYTES = 256 * 1024;

/** Tags and lengths around one field or detail, at most. */
const TAG_BYTES = 32;
// A character of a header takes two bytes at most in UTF-8, one of any other text three.
const bytesOfFields = (fields: readonly { readonly name?: string; readonly value?: string }[] = []): number =>
  fields.reduce((sum, { name = "", value = "" }) => sum + TAG_BYTES + 2 * (name.length + value.length), TAG_BYTES);
const bytesOfText = (text = ""): number => TAG_BYTES + 3 * text.length;

export const bytesOfCall = ({ message, requestId, caller, headers }: MessageInitShape<typeof CallSchema>): number =>
  bytesOfFields(headers) + bytesOfText(requestId) + bytesOfText(caller) + (message?.length ?? 0);

export function bytesOfAnswer({ outcome, headers }: MessageInitShape<typeof AnswerSchema>): number {
  const bytes = bytesOfFields(headers);
  if (outcome?.case !== "failure") return bytes + (outcome?.value?.length ?? 0);
  const { message, details = [] } = outcome.value;
  return details.reduce((sum, detail) => sum + TAG_BYTES + detail.length, bytes + bytesOfText(message));
}

/** Splits calls or answers into messages. `bytesOf` may overestimate a size, but not underestimate it. */
export function* parts<T>(all: readonly T[], bytesOf: (one: T) => number): Generator<T[]> {
  let part: T[] = [];
  let bytes = 0;
  for (const one of all) {
    const size = bytesOf(one);
    if (part.length > 0 && bytes + size > FULL_BYTES) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(one);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

/**
 * Returns a function that does `work` once at the end of a turn of the event loop, however often it is called in it, so that
 * everything that becomes ready in one turn is sent together. If `isAlone` returns true, nothing else is to be expected, and
 * `work` runs on the next tick: HTTP/2 also sends at the end of a turn, so waiting for that would cost another turn.
 */
export function onceATurn(work: () => void, isAlone: () => boolean = () => false): () => void {
  let isDue = false;
  const run = () => {
    isDue = false;
    work();
  };
  return () => {
    if (isDue) return;
    isDue = true;
    if (isAlone()) process.nextTick(run);
    else setImmediate(run);
  };
}

type Field = { readonly name: string; readonly value: string };

/** The headers of a call as fields of the message `Call`: the two that every call has by themselves, the others by name. */
export type CallHeaders = { readonly requestId: string; readonly caller: string; readonly headers: Field[] };

export const toFields = (headers: Headers): Field[] => [...headers].map(([name, value]) => ({ name, value }));

export function toHeaders(fields: readonly Field[]): Headers {
  const headers = new Headers();
  for (const { name, value } of fields) headers.append(name, value);
  return headers;
}

export function toCallHeaders(init: HeadersInit | undefined): CallHeaders {
  const all = { requestId: "", caller: "", headers: [] as Field[] };
  const given = plainHeaders(init);
  for (const key of Object.keys(given)) {
    const [name, value] = [key.toLowerCase(), `${given[key]}`];
    if (name === REQUEST_ID_HEADER) all.requestId = value;
    else if (name === CALLER_HEADER) all.caller = value;
    else all.headers.push({ name, value });
  }
  return all;
}

export function fromCallHeaders({ requestId, caller, headers }: CallHeaders): Headers {
  const all = toHeaders(headers);
  if (requestId !== "") all.set(REQUEST_ID_HEADER, requestId);
  if (caller !== "") all.set(CALLER_HEADER, caller);
  return all;
}

export type AnswerInit = MessageInitShape<typeof AnswerSchema> & { readonly id: number };

/** A failure has exactly what a plain RPC has in its trailers. */
export function failedAnswer(id: number, { code, rawMessage: message, details, metadata }: ConnectError): AnswerInit {
  const value = { code, message, details: details.map((detail) => toBinary(AnySchema, toAny(detail))) };
  return { id, outcome: { case: "failure", value }, headers: toFields(metadata) };
}

export function toError({ code, message, details }: Failure, headers: Answer["headers"]): ConnectError {
  const error = new ConnectError(message, code, toHeaders(headers));
  error.details = details.map((bytes) => fromAny(fromBinary(AnySchema, bytes)));
  return error;
}
