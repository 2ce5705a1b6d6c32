/**
 * From an HTTP request to the request message of its RPC, valid by its rules. And what else its headers ask for: strictness
 * (Prefer), the place where a stream goes on (Last-Event-ID), and an end in time (X-Server-Timeout, Grpc-Timeout).
 */
import type { IncomingHttpHeaders } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import type { Codec } from "../contract/codec.ts";
import type { Operation } from "../contract/operation.ts";
import { fieldError, HttpError } from "../errors/http-error.ts";
import { PARTS, type RequestPart, SchemaError, violationError } from "../errors/violations.ts";
import { valueRules } from "../validation/range.ts";
import { validate } from "../validation/validate.ts";
import { violationsToProto } from "../validation/violation.ts";
import { bodyFieldsReader } from "./body-fields.ts";
import { splitTarget } from "./http.ts";
import { parseQuery, pathReader, queryReader } from "./parameters.ts";
import { scalarFromText } from "./scalars.ts";

export interface Incoming {
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when there was none. */
  readonly body: Uint8Array | undefined;
  /** Unknown members and parameters are errors. */
  readonly strict: boolean;
}

/** How the requests of an operation are read. */
export interface InputOptions {
  readonly codec: Codec;
  /** What stands before the operation's path. */
  readonly basePath: string;
  /** Nesting of a JSON body; the outermost value counts as 1. */
  readonly maxDepth: number;
  readonly jsonNamesOnly?: boolean | undefined;
  /**
   * Fields that the path fills are unknown in the query, and in a body that is the whole request. By default the query's value is
   * left aside, and the body may repeat it.
   */
  readonly pathFieldsFromPathOnly?: boolean | undefined;
  /** The update mask of a PUT or PATCH is an unknown parameter. */
  readonly maskFromBodyOnly?: boolean | undefined;
}

/** Fills the message with what a part of the request says. */
export type ReadPart = (incoming: Incoming, message: Message) => void;

/**
 * Compiles the reader of an operation's requests. The message that it gives back is valid by all rules of its schema,
 * which `prepareValidation` has been called for.
 *
 * @throws HttpError for the first part of a request, in the order of `PARTS`, that is wrong
 */
export function inputReader(operation: Operation, options: InputOptions): (incoming: Incoming) => Message {
  const { input } = operation.method;
  const readPath = pathReader(operation, options.basePath, options.codec);
  const readQuery = queryReader(operation, options);
  const resume = operation.stream?.resume;
  const readers: Record<RequestPart, ReadPart> = {
    header: headerReader(operation),
    path: ({ target }, message) => readPath(splitTarget(target).path, message),
    query(incoming, message) {
      readQuery(parseQuery(splitTarget(incoming.target).query), message, incoming.strict);
      const id = resume ? idIn(incoming.headers) : "";
      if (resume && id !== "") (message as unknown as Record<string, unknown>)[resume.localName] = id;
    },
    body: bodyFieldsReader(operation, options),
  };
  const seenBy = operationFor(operation);
  const violated = ({ headers }: Incoming, message: Message, parts: readonly RequestPart[]) => {
    const violations = validate(input, message, options.maskFromBodyOnly ?? false);
    return violations.length > 0
      ? violationError(seenBy(headers), violationsToProto(violations).violations, parts)
      : undefined;
  };
  return (incoming) => {
    const message = create(input);
    for (const [i, part] of PARTS.entries()) {
      try {
        readers[part](incoming, message);
      } catch (error) {
        // A rule broken by an earlier part goes first.
        throw (error instanceof HttpError ? violated(incoming, message, PARTS.slice(0, i)) : undefined) ?? error;
      }
    }
    const error = violated(incoming, message, PARTS);
    if (error) throw error;
    return message;
  };
}

function headerReader({ requestHeaders }: Operation): ReadPart {
  const readers = requestHeaders.map(({ name, field }) => ({
    name,
    key: name.toLowerCase(),
    field,
    read: scalarFromText(field.scalar as never, valueRules(field)),
    textOf: name === "Idempotency-Key" ? idempotencyKey : String,
  }));
  return ({ headers }, message) => {
    for (const { name, key, field, read, textOf } of readers) {
      const value = headers[key];
      if (value === undefined) continue;
      try {
        (message as unknown as Record<string, unknown>)[field.localName] = read(textOf(String(value)));
      } catch (error) {
        throw error instanceof SchemaError ? fieldError("INVALID_HEADER", name, error.message) : error;
      }
    }
  };
}

/** The key: the text of a string of RFC 8941 (3.3.3), as the draft of the header has it, or else the value as it was sent. */
const idempotencyKey = (value: string): string =>
  /^"(?:[^"\\]|\\["\\])*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;

const QUOTED = /"(?:[^"\\]|\\.)*"?/g;

/** Whether what is unknown in a request is an error: where it is not ignored, and where the caller prefers it (`Prefer`). */
export const isStrict = (prefer: string | string[] | undefined, ignoreUnknown: boolean): boolean =>
  !ignoreUnknown || prefersStrict(prefer);

/** Whether the caller prefers `handling=strict` (RFC 7240). Of a preference given twice the first counts. */
export function prefersStrict(value: string | string[] | undefined): boolean {
  if (value === undefined) return false;
  const handling = String(value)
    .replaceAll(QUOTED, (quoted) => quoted.replaceAll(",", "_"))
    .split(",")
    .map((preference) => /^\s*handling\s*=\s*"?(\w+)"?\s*(;|$)/i.exec(preference)?.[1]?.toLowerCase())
    .find((found) => found !== undefined);
  return handling === "strict";
}

/**
 * Where a reader of events goes on that reconnects by itself (WHATWG HTML, 9.2.4). It sends its first query again, which may say
 * where it began, so the header wins.
 */
export const LAST_EVENT_ID = "Last-Event-ID";

/** Empty is absent, as with an EventSource that has seen no id yet. Browsers encode it as UTF-8, and node reads bytes. */
const idIn = (headers: IncomingHttpHeaders): string =>
  Buffer.from(String(headers["last-event-id"] ?? ""), "latin1").toString();

/** The operation as a request sees it: with the header, the field that it fills is in a header and not in the query. */
export function operationFor(operation: Operation): (headers: IncomingHttpHeaders) => Operation {
  const field = operation.stream?.resume;
  if (!field) return () => operation;
  const requestHeaders = [...operation.requestHeaders, { name: LAST_EVENT_ID, field }];
  const resumed = { ...operation, requestHeaders };
  return (headers) => (idIn(headers) === "" ? operation : resumed);
}

/**
 * `X-Server-Timeout` has decimal seconds, such as 2.5; `Grpc-Timeout` has, as in gRPC, up to eight digits and a unit: H, M or S
 * for hours, minutes and seconds, m, u or n for thousandths, millionths and billionths of a second.
 */
export type TimeoutHeader = "X-Server-Timeout" | "Grpc-Timeout";

export const TIMEOUT_HEADERS: readonly TimeoutHeader[] = ["X-Server-Timeout", "Grpc-Timeout"];

/**
 * Compiles the reader of the time that the caller gives: the least of what the headers say and the greatest that there is, in
 * milliseconds.
 */
export function timeoutReader(names: readonly TimeoutHeader[], maxMs: number) {
  const readers = names.map((name) => ({ key: name.toLowerCase(), read: READERS[name] }));
  /** @throws HttpError INVALID_HEADER */
  return (headers: IncomingHttpHeaders): number => {
    let ms = maxMs;
    for (const { key, read } of readers) {
      const value = headers[key];
      if (value !== undefined) ms = Math.min(ms, read(String(value)));
    }
    return ms;
  };
}

const READERS: Readonly<Record<TimeoutHeader, (value: string) => number>> = {
  "X-Server-Timeout": (value) => {
    const seconds = /^\d+(\.\d+)?$/.test(value) ? Number(value) : 0;
    if (seconds > 0) return seconds * 1000;
    throw fieldError("INVALID_HEADER", "X-Server-Timeout", "must be a decimal number of seconds above 0, such as 2.5");
  },
  "Grpc-Timeout": (value) => {
    const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? [];
    const ms = Number(digits) * (UNIT_MS[unit ?? ""] ?? 0);
    if (ms > 0) return ms;
    throw fieldError(
      "INVALID_HEADER",
      "Grpc-Timeout",
      "must be up to eight digits above 0 and a unit of H, M, S, m, u, n, such as 500m",
    );
  },
};

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
