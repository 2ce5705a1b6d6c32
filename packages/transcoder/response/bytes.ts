/** Answers of google.api.HttpBody: bytes, of the type that the service names. */
import { isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operation.ts";
import { contentOf } from "./encode.ts";

export interface Bytes {
  readonly type: string;
  readonly data: Uint8Array;
}

/** What says nothing of its bytes (RFC 9110, 8.3). */
export const ANY_BYTES = "application/octet-stream";

/** Compiles what a response tells: itself, or the field that `response_body` names. What it throws is the service's fault. */
export function answeredBytes({ response }: Pick<Operation, "response">): (response: Message) => Bytes {
  return (message) => {
    if (response && !isFieldSet(message, response)) return { type: ANY_BYTES, data: new Uint8Array() };
    const { contentType, data } = (response ? contentOf(message, response) : message) as unknown as HttpBody;
    if (NOT_IN_A_TYPE.test(contentType))
      throw new Error(`content_type: ${JSON.stringify(contentType)} is no media type`);
    return { type: contentType || ANY_BYTES, data };
  };
}

interface HttpBody {
  readonly contentType: string;
  readonly data: Uint8Array;
}

const NOT_IN_A_TYPE = /[^\t\x20-\x7e]/;
