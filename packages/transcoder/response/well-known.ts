/** Well-known types that have a form of their own in JSON, as text. */
import { type DescMessage, type JsonObject, type Message, toJson } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  type FieldMask,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { formatDuration } from "../request/duration.ts";
import { formatFieldMask } from "../request/field-mask.ts";
import { isDynamic } from "../request/struct.ts";
import { formatTimestamp } from "../request/timestamp.ts";

type Write = (message: never) => string;

const TEXTS: ReadonlyMap<string, Write> = new Map<string, Write>([
  [TimestampSchema.typeName, (value: Timestamp) => JSON.stringify(formatTimestamp(value))],
  [DurationSchema.typeName, (value: Duration) => JSON.stringify(formatDuration(value))],
  [FieldMaskSchema.typeName, (value: FieldMask) => JSON.stringify(formatFieldMask(value))],
]);

/**
 * The writer of a message of such a type, but of wrappers and Any; undefined for other types. It throws for what JSON can't
 * tell, such as a Timestamp of the year 10,000 and NaN in a Struct.
 */
export const wellKnownWriter = (desc: DescMessage): Write | undefined =>
  isDynamic(desc) ? (message: Message) => JSON.stringify(toJson(desc, message)) : TEXTS.get(desc.typeName);

/** A Struct as protobuf-es holds it in a field. @throws RangeError for a number that JSON has not */
export const structText = (object: JsonObject): string => JSON.stringify(object, finite);

function finite(_name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value))
    throw new RangeError(`a Struct can't have ${value} in JSON`);
  return value;
}
