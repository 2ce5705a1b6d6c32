/** From the body of a request to the fields that it fills. */
import type { IncomingHttpHeaders } from "node:http";
import {
  clearField,
  create,
  type DescField,
  type DescMessage,
  equals,
  isFieldSet,
  type Message,
} from "@bufbuild/protobuf";
import { FieldMaskSchema, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { assignAt, type FieldPath, heldBy, heldIn, jsonPath, keptOut, lastOf } from "../contract/field-path.ts";
import { byName } from "../contract/fields.ts";
import { type Body, isMerged, type Operation, patchedField, takesBytes } from "../contract/operation.ts";
import { remembered } from "../contract/remembered.ts";
import { fieldError, HttpError } from "../errors/http-error.ts";
import { SchemaError } from "../errors/violations.ts";
import { type Assign, assigner, isUsed, membersReader, messageReader } from "./decode.ts";
import type { InputOptions, ReadPart } from "./input.ts";
import { type JsonObject, type JsonValue, parseJson } from "./json.ts";

/** Compiles the reader of an operation's body. @throws HttpError */
export function bodyFieldsReader(operation: Operation, options: InputOptions): ReadPart {
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
function besidePath(operation: Operation, body: Body, options: InputOptions): Assign {
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

function bodyAssigner(operation: Operation, body: Body, options: InputOptions): Assign {
  const { updateMask, record, method } = operation;
  const { codec, jsonNamesOnly = false } = options;
  const resource = patchedField(body);
  if (updateMask && resource) {
    const fillMask = maskFiller(operation, updateMask, resource, jsonNamesOnly);
    if (body.kind === "field")
      return resourceAssigner(resource, membersReader(resource.message.fields, codec, record), fillMask);
    return requestAssigner(updateMask, resource, membersReader(body.fields, codec, record), fillMask);
  }
  if (body.kind === "field") return assigner(body.field, codec, record);
  if (!hasCustomJsonRepresentation(method.input)) return membersReader(body.fields, codec, record);
  const readWhole = messageReader(method.input, codec);
  return (message, json, handling) => Object.assign(message, readWhole(json, handling));
}

type FillMask = (message: Message, patch: JsonValue) => void;
type Resource = NonNullable<ReturnType<typeof patchedField>>;

/** The body is a patch of the resource. */
const resourceAssigner =
  (resource: Resource, readMembers: Assign, fillMask: FillMask): Assign =>
  (message, json, handling) => {
    const other = keptOut(message, [resource]);
    if (other) throw new SchemaError("must not be given together with another field of its oneof");
    const value = create(resource.message);
    readMembers(value, json, { ...handling, isPatch: true, depth: 2 });
    assignAt(message, [resource], value);
    fillMask(message, json);
  };

/** The body is the whole request, with a patch of the resource in it. */
const requestAssigner =
  (updateMask: DescField, resource: Resource, readMembers: Assign, fillMask: FillMask): Assign =>
  (message, json, handling) => {
    const inQuery = heldIn(message, updateMask);
    readMembers(message, json, { ...handling, isPatch: true });
    if (inQuery) assignAt(message, [updateMask], inQuery);
    const members = json as ReadonlyMap<string, JsonValue>;
    // Without the resource, or with null for it, nothing is named.
    fillMask(message, members.get(resource.jsonName) ?? members.get(resource.name) ?? new Map());
  };

/** A mask with more paths is not made: with many of them deep in a message, it could be far larger than the patch. */
const MOST_PATHS = 1000;

/**
 * Compiles what fills the update mask of a message from the patch of its resource, unless the message has a mask already.
 *
 * @throws SchemaError when the patch changes nothing, or too much
 */
function maskFiller(
  { acceptsEmptyMask, params }: Operation,
  updateMask: DescField,
  resource: Resource,
  jsonNamesOnly: boolean,
): FillMask {
  const { message: desc } = resource;
  // The path says which resource it is, and that does not change.
  const fixed = params
    .filter(([first]) => first === resource)
    .map(([, ...within]) => within.map(({ name }) => name).join("."));
  const pathsIn = pathsReader(jsonNamesOnly);
  const names = desc.fields
    .filter((field) => isUsed(field) && !fixed.includes(field.name))
    .map(({ jsonName }) => jsonName);
  return (message, patch) => {
    if (isFieldSet(message, updateMask) || !(patch instanceof Map)) return;
    const paths = pathsIn(patch, desc).filter((path) => !fixed.includes(path));
    if (paths.length === 0 && !acceptsEmptyMask)
      throw new SchemaError(`names no member that can be changed: it must name at least one of ${names.join(", ")}`);
    assignAt(message, [updateMask], create(FieldMaskSchema, { paths }));
  };
}

function pathsReader(jsonNamesOnly: boolean) {
  const membersOf = remembered(({ fields }: DescMessage) => byName(fields.filter(isUsed), jsonNamesOnly));
  return (patch: JsonObject, resource: DescMessage): string[] => {
    const paths: string[] = [];
    const look = (object: JsonObject, desc: DescMessage, prefix: string): void => {
      const members = membersOf(desc);
      for (const [name, item] of object) {
        const field = members.get(name);
        if (!field) continue;
        const path = prefix + field.name;
        // A message type without fields has nothing to name below it: its own path is named.
        if (item instanceof Map && isMerged(field) && field.message.fields.length > 0)
          look(item, field.message, `${path}.`);
        else if (paths.push(path) > MOST_PATHS)
          throw new SchemaError(`must not change more than ${MOST_PATHS} members`);
      }
    };
    look(patch, resource, "");
    return paths;
  };
}

/**
 * Compiles what fills the message of a request with a body of bytes, or with a part of one. The type is what the request names,
 * and empty where it names none.
 */
export const bytesReader =
  (body: Body) =>
  (message: Message, { "content-type": contentType = "" }: IncomingHttpHeaders, data: Uint8Array): void => {
    if (body.kind === "all") Object.assign(message, { contentType, data });
    else assignAt(message, [body.field], create(body.field.message as DescMessage, { contentType, data } as never));
  };
