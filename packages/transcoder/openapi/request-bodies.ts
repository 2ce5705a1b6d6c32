/** What an operation takes as its body. */
import type { DescField } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { type Operation, patchedField, streamsRequests, takesBytes } from "../contract/operation.ts";
import { JSON_TYPE } from "../policy/media.ts";
import { BYTES, type Json, type JsonObject } from "./json.ts";
import { requestContent } from "./message-streams.ts";
import type { Schemas } from "./schemas.ts";
import type { Sources } from "./sources.ts";

type Body = NonNullable<Operation["body"]>;

export function requestBodyOf(
  operation: Operation,
  { examples, patchExamples }: Pick<Sources, "examples" | "patchExamples">,
  schemas: Schemas,
): JsonObject | undefined {
  const { body, updateMask, method } = operation;
  if (!body) return undefined;
  if (takesBytes(operation)) return { content: BYTES };
  if (streamsRequests(operation))
    return { required: true, content: requestContent(bodySchema(operation, body, schemas)) };
  const schema = updateMask ? patchSchema(operation, body, schemas) : bodySchema(operation, body, schemas);
  const example = exampleOf(body, method.input.typeName, updateMask ? patchExamples : examples);
  const types = updateMask ? ["application/merge-patch+json", JSON_TYPE] : [JSON_TYPE];
  // In proto3 JSON a body that may be empty need not be there.
  const mayBeEmpty = body.kind === "all" && !updateMask && schemas.codec.isLenient && schema.required === undefined;
  return {
    required: mayBeEmpty ? undefined : true,
    content: Object.fromEntries(types.map((type) => [type, { schema, example }])),
  };
}

function patchSchema({ method, updateMask }: Operation, body: Body, schemas: Schemas): JsonObject {
  const resource = patchedField(body) as NonNullable<ReturnType<typeof patchedField>>;
  return body.kind === "field"
    ? schemas.mergePatch(resource.message)
    : schemas.wholePatch(method.input, body.fields, resource, updateMask as DescField);
}

function bodySchema({ method: { input } }: Operation, body: Body, schemas: Schemas): JsonObject {
  if (body.kind === "all")
    return hasCustomJsonRepresentation(input) ? schemas.message(input, "input") : schemas.object(body.fields);
  const { field } = body;
  return field.fieldKind === "message" ? schemas.message(field.message, "input") : schemas.field(field, "input");
}

/** The first example of the request, as much of it as is the body; else that of the body's message. */
function exampleOf(body: Body, request: string, examples: Sources["examples"] = {}): Json | undefined {
  const whole = examples[request]?.[0] as JsonObject | undefined;
  if (body.kind === "all") {
    const members = body.fields.map(({ jsonName }) => [jsonName, whole?.[jsonName]] as const);
    return whole && Object.fromEntries(members);
  }
  const { jsonName, fieldKind, message } = body.field;
  return whole?.[jsonName] ?? (fieldKind === "message" ? examples[message.typeName]?.[0] : undefined);
}
