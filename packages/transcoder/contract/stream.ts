/** How the responses of a server-streaming RPC are told as events, by the option `stream`. */
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { stream as streamOption } from "../gen/transcoder/v1/annotations_pb.ts";

/** A message that can be an event's data. */
export interface EventData {
  /** The response's field that holds it; undefined when the response itself is the data. */
  readonly field: DescField | undefined;
  readonly message: DescMessage;
  /** The data's field with the name of the event. */
  readonly event: DescField | undefined;
}

export interface Stream {
  /** The response's field with the event's id. */
  readonly id: DescField | undefined;
  /** What can be the data. A response in which none of these is set is a heartbeat. */
  readonly data: readonly EventData[];
  /** The request's field for the id that a reader comes back with. */
  readonly resume: DescField | undefined;
}

/**
 * Undefined where the RPC does not have the option.
 *
 * @throws Error when the option names what there is not
 */
export function streamOf(method: DescMethod, query: readonly DescField[]): Stream | undefined {
  if (!hasOption(method, streamOption)) return undefined;
  if (method.methodKind !== "server_streaming")
    throw new Error("the option stream is for an RPC that answers one request with a stream");
  const { id, data, event, resume } = getOption(method, streamOption);
  return {
    id: id === "" ? undefined : text(id, method.output.fields, "id"),
    data: dataOf(method.output, data).map(({ field, message }) => ({
      field,
      message,
      event: event === "" ? undefined : text(event, message.fields, `event of ${message.name}`),
    })),
    resume: resume === "" ? undefined : text(resume, query, "resume"),
  };
}

function dataOf(response: DescMessage, name: string): Omit<EventData, "event">[] {
  if (name === "") return [{ field: undefined, message: response }];
  const oneof = response.oneofs.find((candidate) => candidate.name === name);
  const fields = oneof?.fields ?? response.fields.filter((candidate) => candidate.name === name);
  if (fields.length === 0) throw new Error(`data names "${name}", which is no field and no oneof`);
  return fields.map((field) => {
    if (field.fieldKind !== "message") throw new Error(`data needs a message, which ${field.name} is not`);
    return { field, message: field.message };
  });
}

function text(name: string, fields: readonly DescField[], what: string): DescField {
  const field = fields.find((candidate) => candidate.name === name);
  if (field?.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING || field.oneof)
    throw new Error(`${what} names "${name}", which is no string field there`);
  return field;
}
