/** From the body of a request to the fields that it fills. */
import type { IncomingHttpHeaders } from "node:http";
import { clearField, create, equals, isFieldSet, type Message } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import type { Codec } from "../contract/codec.ts";
import { assignAt, type FieldPath, heldBy, heldIn, jsonPath, keptOut, lastOf } from "../contract/field-path.ts";
import { type Body, type Operation, patchedField, takesBytes } from "../contract/operation.ts";
import { fieldError, HttpError } from "../errors/http-error.ts";
import { bytesReader } from "./bytes.ts";
import { type Assign, assigner, membersReader, messageReader } from "./decode.ts";
import { type JsonValue, parseJson } from "./json.ts";
import { maskFiller } from "./merge-patch.ts";
import { SchemaError } from "./schema-error.ts";

/** How the body of an operation is read. */
export interface BodyOptions {
  /** Nesting of JSON; the outermost value counts as 1. */
  readonly maxDepth: number;
  readonly jsonNamesOnly?: boolean | undefined;
  readonly codec: Codec;
  /** Fields that the path fills are unknown in a body that is the whole request. By default it may repeat their values. */
  readonly pathFieldsFromPathOnly?: boolean | undefined;
}

interface WithBody {
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array | undefined;
  readonly strict: boolean;
}

/** Compiles the reader of an operation's body. @throws HttpError */
export function bodyFieldsReader(
  operation: Operation,
  options: BodyOptions,
): (incoming: WithBody, message: Message) => void {
  const { body } = operation;
  const { maxDepth, jsonNamesOnly = false } = options;
  if (!body) return () => {};
  if (takesBytes(operation)) {
    const readBytes = bytesReader(body);
    return ({ headers, body: bytes = EMPTY }, message) => readBytes(message, headers, bytes);
  }
  const assign = besidePath(operation, body, options);
  const mayBeEmpty = body.kind === "all" && !operation.updateMask && options.codec.isLenient;
  return ({ body: bytes = EMPTY, strict }, message) => {
    // Where the path says all that an RPC needs, such as "/v1/jobs/7:cancel", many clients send nothing more.
    if (bytes.length === 0 && mayBeEmpty) return;
    const json = parseJson(bytes, maxDepth);
    try {
      assign(message, json, { strict, jsonNamesOnly, depth: 1 });
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      throw error.path === ""
        ? new HttpError(error.code, error.sentence)
        : fieldError(error.code, error.path, error.message);
    }
  };
}

const EMPTY = new Uint8Array();

/** A body may leave out a field that the path fills, or repeat its value. */
function besidePath(operation: Operation, body: Body, options: BodyOptions): Assign {
  const inBody = operation.params.filter((path) =>
    body.kind === "all" ? path.length > 1 || !options.pathFieldsFromPathOnly : path[0] === body.field,
  );
  const own = body.kind === "all" ? { ...body, fields: [...body.fields, ...namedIn(inBody)] } : body;
  const assign = bodyAssigner(operation, own, options);
  if (inBody.length === 0) return assign;
  return (message, json, handling) => {
    const given = inBody.map((path) => takeOut(message, path));
    assign(message, json, handling);
    for (const [i, path] of inBody.entries()) {
      const shown = jsonPath((body.kind === "field" ? path.slice(1) : path) as unknown as FieldPath);
      const other = keptOut(message, path);
      if (other) throw new SchemaError("must not be given together with another field of its oneof").under(shown);
      if (differs(message, path, given[i]))
        throw new SchemaError("differs from the value in the path: leave it out, or say the same").under(shown);
      assignAt(message, path, given[i]);
    }
  };
}

const namedIn = (paths: readonly FieldPath[]) =>
  paths.flatMap(([field, ...within]) => (within.length === 0 ? [field] : []));

function takeOut(message: Message, path: FieldPath): unknown {
  const holder = heldBy(message, path);
  if (!holder) return undefined;
  const value = heldIn(holder, lastOf(path));
  clearField(holder, lastOf(path));
  return value;
}

/** Whether a message has a value at the path that is not this one. */
function differs(message: Message, path: FieldPath, value: unknown): boolean {
  const field = lastOf(path);
  const holder = heldBy(message, path);
  if (!holder || !isFieldSet(holder, field)) return false;
  const [one, other] = [heldIn(holder, field), value].map((each) => {
    const alone = create(field.parent);
    assignAt(alone, [field], each);
    return alone;
  }) as [Message, Message];
  return !equals(field.parent, one, other);
}

function bodyAssigner(operation: Operation, body: Body, { codec, jsonNamesOnly = false }: BodyOptions): Assign {
  const { updateMask, record, method } = operation;
  const resource = patchedField(body);
  if (updateMask && resource) {
    const fillMask = maskFiller(operation, resource, jsonNamesOnly);
    return body.kind === "field"
      ? resourceAssigner(operation, resource, codec, fillMask)
      : wholeAssigner(operation, body.fields, resource, codec, fillMask);
  }
  if (body.kind === "field") return assigner(body.field, codec, record);
  if (hasCustomJsonRepresentation(method.input)) {
    const readWhole = messageReader(method.input, codec);
    return (message, json, handling) => Object.assign(message, readWhole(json, handling));
  }
  const readAll = membersReader(body.fields, codec, record);
  return (message, json, handling) => readAll(json, message, handling);
}

type FillMask = (message: Message, patch: JsonValue) => void;
type Resource = NonNullable<ReturnType<typeof patchedField>>;

/** The body is a patch of the resource. */
function resourceAssigner({ record }: Operation, resource: Resource, codec: Codec, fillMask: FillMask): Assign {
  const read = membersReader(resource.message.fields, codec, record);
  return (message, json, handling) => {
    const other = keptOut(message, [resource]);
    if (other) throw new SchemaError("must not be given together with another field of its oneof");
    const value = create(resource.message);
    read(json, value, { ...handling, isPatch: true, depth: 2 });
    assignAt(message, [resource], value);
    fillMask(message, json);
  };
}

/** The body is the whole request, with a patch of the resource in it. */
function wholeAssigner(
  { updateMask, record }: Operation,
  fields: Extract<Body, { kind: "all" }>["fields"],
  resource: Resource,
  codec: Codec,
  fillMask: FillMask,
): Assign {
  const read = membersReader(fields, codec, record);
  return (message, json, handling) => {
    const inQuery = updateMask && heldIn(message, updateMask);
    read(json, message, { ...handling, isPatch: true });
    if (updateMask && inQuery) assignAt(message, [updateMask], inQuery);
    const members = json as ReadonlyMap<string, JsonValue>;
    // Without the resource, or with null for it, nothing is named.
    fillMask(message, members.get(resource.jsonName) ?? members.get(resource.name) ?? new Map());
  };
}
