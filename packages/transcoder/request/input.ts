/** From an HTTP request to the request message of its RPC. */
import type { IncomingHttpHeaders } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operation.ts";
import { fieldError, HttpError } from "../errors/http-error.ts";
import { PARTS, type RequestPart, violationError } from "../errors/violations.ts";
import { valueRules } from "../validation/range.ts";
import { validate } from "../validation/validate.ts";
import { violationsToProto } from "../validation/violation.ts";
import { type BodyOptions, bodyFieldsReader } from "./body-fields.ts";
import { splitTarget } from "./head.ts";
import { idempotencyKey, operationFor, resumeReader } from "./headers.ts";
import { pathReader } from "./path.ts";
import { parseQuery, type QueryOptions, queryReader } from "./query.ts";
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

/** How the requests of an operation are read. */
export interface InputOptions extends QueryOptions, BodyOptions {
  /** What stands before the operation's path. */
  readonly basePath: string;
}

type ReadPart = (incoming: Incoming, message: Message) => void;

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
  const resume = resumeReader(operation);
  const readers: Record<RequestPart, ReadPart> = {
    header: headerReader(operation),
    path: ({ target }, message) => readPath(splitTarget(target).path, message),
    query(incoming, message) {
      readQuery(parseQuery(splitTarget(incoming.target).query), message, incoming.strict);
      resume(incoming.headers, message);
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
