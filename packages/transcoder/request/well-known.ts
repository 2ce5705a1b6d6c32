/** Well-known types that are a string in JSON, and so can be in a path or a query too. */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { DurationSchema, FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { parseDuration } from "./duration.ts";
import { parseFieldMask } from "./field-mask.ts";
import { SchemaError } from "./schema-error.ts";
import { parseTimestamp } from "./timestamp.ts";

interface TextForm {
  /** `isJson` tells a string of a body from a parameter. */
  readonly parse: (text: string, isJson: boolean) => Message | undefined;
  /** What is said of anything else. */
  readonly problem: string;
}

const FORMS: ReadonlyMap<string, TextForm> = new Map<string, TextForm>([
  [
    TimestampSchema.typeName,
    {
      parse: parseTimestamp,
      problem: "must be a date and time such as 2027-12-31T23:59:59Z (RFC 3339), in years 0001 to 9999",
    },
  ],
  [
    DurationSchema.typeName,
    {
      parse: parseDuration,
      problem: 'must be seconds with an "s" behind them, such as 1.5s, from -315576000000s to 315576000000s',
    },
  ],
  [
    FieldMaskSchema.typeName,
    {
      parse: (text, isJson) => parseFieldMask(text, !isJson),
      problem: "must be names of fields separated by commas, such as title,author.givenName",
    },
  ],
]);

/** Whether all of a message is a string in JSON. */
export const hasTextForm = ({ typeName }: DescMessage): boolean => FORMS.has(typeName);

/** Compiles the reader of a message that has a text form. @throws SchemaError */
export function messageFromText({ typeName }: DescMessage, isJson: boolean): (value: unknown) => Message {
  const { parse, problem } = FORMS.get(typeName) as TextForm;
  return (value) => {
    const message = typeof value === "string" ? parse(value, isJson) : undefined;
    if (!message) throw new SchemaError(problem);
    return message;
  };
}
