/** What can't be served as JSON, found out at the start and not with the first request. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { EmptySchema, FeatureSet_FieldPresence, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { isHttpBody } from "./kinds.ts";

const WELL_KNOWN = "google.protobuf.";
const NULL = "google.protobuf.NullValue";

/** Looks through a field and all that it holds. @throws Error that names what is in the way */
export function ensureServed(field: DescField, isInput: boolean, seen = new Set<DescMessage>()): void {
  if (isInput && field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED)
    throw new Error(`${field.name} is "required" of proto2, which is not served: use the rule of buf.validate`);
  if (field.enum?.typeName === NULL)
    throw new Error(`${field.name}: ${NULL} is not served as JSON; a member that is absent says as much`);
  const { message } = field;
  if (!message || seen.has(message) || message.typeName === TimestampSchema.typeName || isHttpBody(message)) return;
  if (message.typeName.startsWith(WELL_KNOWN))
    throw new Error(`${field.name}: ${message.typeName} is not served as JSON; of the well-known types, Timestamp is`);
  seen.add(message);
  for (const member of message.fields) ensureServed(member, isInput, seen);
}

/** Looks at a message that is a request or an answer by itself, and so is made of its members. @throws Error that names it */
export function ensureWhole({ typeName }: DescMessage, role: "request" | "answer"): void {
  if (typeName.startsWith(WELL_KNOWN) && typeName !== EmptySchema.typeName)
    throw new Error(`${typeName} is not served as a whole ${role}; of the well-known types, Empty is`);
}
