/** Limits how much goes into one message of a link. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AnswerSchema, CallSchema } from "../gen/link/internal/v1/link_service_pb.ts";

/** Most bytes of a message; one that holds a single call or answer may have more. */
const FULL_BYTES = 256 * 1024;

/** Tags and lengths around one field or detail, at most. */
const TAG_BYTES = 32;
// A character of a header takes two bytes at most in UTF-8, one of any other text three.
const bytesOfFields = (fields: readonly { readonly name?: string; readonly value?: string }[] = []): number =>
  fields.reduce((sum, { name = "", value = "" }) => sum + TAG_BYTES + 2 * (name.length + value.length), TAG_BYTES);
const bytesOfText = (text = ""): number => TAG_BYTES + 3 * text.length;

export const bytesOfCall = ({ message, requestId, caller, headers }: MessageInitShape<typeof CallSchema>): number =>
  bytesOfFields(headers) + bytesOfText(requestId) + bytesOfText(caller) + (message?.length ?? 0);

export function bytesOfAnswer({ outcome, headers }: MessageInitShape<typeof AnswerSchema>): number {
  const bytes = bytesOfFields(headers);
  if (outcome?.case !== "failure") return bytes + (outcome?.value?.length ?? 0);
  const { message, details = [] } = outcome.value;
  return details.reduce((sum, detail) => sum + TAG_BYTES + detail.length, bytes + bytesOfText(message));
}

/** Splits calls or answers into messages. `bytesOf` may overestimate a size, but not underestimate it. */
export function* parts<T>(all: readonly T[], bytesOf: (one: T) => number): Generator<T[]> {
  let part: T[] = [];
  let bytes = 0;
  for (const one of all) {
    const size = bytesOf(one);
    if (part.length > 0 && bytes + size > FULL_BYTES) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(one);
    bytes += size;
  }
  if (part.length > 0) yield part;
}
