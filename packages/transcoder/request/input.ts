/** From an HTTP request to the request message of its RPC. */
import type { IncomingHttpHeaders } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { type Codec, EXACT } from "../contract/codec.ts";
import { takesBytes } from "../contract/kinds.ts";
import type { Body, Operation } from "../contract/operation.ts";
import { fieldError, HttpError } from "../errors/http-error.ts";
import { PARTS, type RequestPart, violationError } from "../errors/violations.ts";
import { valueRules } from "../validation/range.ts";
import { validate } from "../validation/validate.ts";
import { violationsToProto } from "../validation/violation.ts";
import { bytesReader } from "./bytes.ts";
import { type Assign, assigner, isUsed, membersReader, messageReader } from "./decode.ts";
import { splitTarget } from "./head.ts";
import { idempotencyKey, operationFor, resumeReader } from "./headers.ts";
import { parseJson } from "./json.ts";
import { pathReader } from "./path.ts";
import { parseQuery, queryReader } from "./query.ts";
import { scalarFromText } from "./scalars.ts";
import { SchemaError } from "./schema-error.ts";

export interface Incoming {
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when there was none. */
  readonly body: Uint8Array | undefined;
  /** Unknown members and parameters are errors. */
  readonly strict: boolean;
}

type ReadPart = (incoming: Incoming, message: Message) => void;

/**
 * Compiles the reader of an operation's requests. The message that it gives back is valid by all rules of its schema,
 * which `prepareValidation` has been called for.
 *
 * @throws HttpError for the first part of a request, in the order of `PARTS`, that is wrong
 */
export function inputReader(
  operation: Operation,
  basePath: string,
  maxDepth: number,
  jsonNamesOnly = false,
  codec = EXACT,
): (incoming: Incoming) => Message {
  const { input } = operation.method;
  const readPath = pathReader(operation, basePath, codec);
  const readQuery = queryReader(operation, jsonNamesOnly, codec);
  const resume = resumeReader(operation);
  const readBody = bodyReader(operation, maxDepth, jsonNamesOnly, codec);
  const goesFirst = operation.params.some(({ length }) => length > 1);
  const readers: Record<RequestPart, ReadPart> = {
    header: headerReader(operation),
    path: ({ target }, message) => readPath(splitTarget(target).path, message),
    query(incoming, message) {
      readQuery(parseQuery(splitTarget(incoming.target).query), message, incoming.strict);
      resume(incoming.headers, message);
    },
    body(incoming, message) {
      readBody(incoming, message);
      // What the path says of a message goes before what the body says of it.
      if (goesFirst) readPath(splitTarget(incoming.target).path, message);
    },
  };
  const seenBy = operationFor(operation);
  const violated = ({ headers }: Incoming, message: Message, parts: readonly RequestPart[]) => {
    const violations = validate(input, message);
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

function bodyReader(operation: Operation, maxDepth: number, jsonNamesOnly: boolean, codec: Codec): ReadPart {
  const { body } = operation;
  if (!body) return () => {};
  if (takesBytes(operation)) {
    const readBytes = bytesReader(body);
    return ({ headers, body: bytes = EMPTY }, message) => readBytes(message, headers, bytes);
  }
  const assign = bodyAssigner(operation, body, codec);
  return ({ body: bytes = EMPTY, strict }, message) => {
    const json = parseJson(bytes, maxDepth);
    try {
      assign(message, json, { strict, jsonNamesOnly });
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      throw error.path === ""
        ? new HttpError(error.code, error.sentence)
        : fieldError(error.code, error.path, error.message);
    }
  };
}

const EMPTY = new Uint8Array();

function bodyAssigner(operation: Operation, body: Body, codec: Codec): Assign {
  const { updateMask, acceptsEmptyMask, record, method } = operation;
  if (body.kind === "all") {
    if (hasCustomJsonRepresentation(method.input)) {
      const readWhole = messageReader(method.input, codec);
      return (message, json, handling) => Object.assign(message, readWhole(json, handling));
    }
    const readAll = membersReader(body.fields, codec, record);
    return (message, json, handling) => readAll(json, message, handling);
  }
  const { field } = body;
  if (!updateMask || field.fieldKind !== "message") return assigner(field, codec, record);
  const { fields } = field.message;
  const readPatch = membersReader(fields, codec, record);
  const names = fields.filter(isUsed).map(({ jsonName }) => jsonName);
  return (message, json, handling) => {
    const value = create(field.message);
    const paths: string[] = [];
    readPatch(json, value, handling, paths);
    if (paths.length === 0 && !acceptsEmptyMask)
      throw new SchemaError(`names no member that can be changed: it must name at least one of ${names.join(", ")}`);
    const members = message as unknown as Record<string, unknown>;
    members[field.localName] = value;
    members[updateMask.localName] = create(FieldMaskSchema, { paths });
  };
}
