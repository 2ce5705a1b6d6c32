/** Bodies of google.api.HttpBody: the bytes as they come, of any type. */
import type { IncomingHttpHeaders } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import { assignAt } from "../contract/field-path.ts";
import type { Body } from "../contract/operation.ts";

/** Fills the message of a request with a body, or with a part of one. */
export type ReadBytes = (message: Message, headers: IncomingHttpHeaders, data: Uint8Array) => void;

/** The type is what the request names, and empty where it names none. */
export function bytesReader(body: Body): ReadBytes {
  if (body.kind === "all")
    return (message, headers, data) => void Object.assign(message, { contentType: typeIn(headers), data });
  const { field } = body;
  const desc = field.message;
  if (!desc) throw new Error(`${field.name} is no message`);
  return (message, headers, data) =>
    assignAt(message, [field], create(desc, { contentType: typeIn(headers), data } as never));
}

const typeIn = (headers: IncomingHttpHeaders): string => headers["content-type"] ?? "";
