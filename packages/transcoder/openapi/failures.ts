/** Which errors an operation can answer with: its own, and those that follow from what it takes. */
import { type DescEnum, getOption } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operations.ts";
import { error as errorKind } from "../gen/transcoder/v1/annotations_pb.ts";
import { isConditional } from "../policy/conditional.ts";
import type { Sources } from "./sources.ts";

/** One entry of the catalogue of errors. */
export interface Reason {
  /** As in an error's member `code`. */
  readonly code: string;
  readonly status: number;
  readonly meaning: string;
}

/** The catalogue of errors, in its own order. */
export function catalogue({ reasons, docs }: Pick<Sources, "reasons" | "docs">): Reason[] {
  return reasons.values
    .filter((value) => value.number !== 0)
    .map((value) => ({
      code: codeOf(reasons, value.name),
      status: getOption(value, errorKind).httpStatus,
      meaning: docs[`${reasons.typeName}.${value.name}`] ?? "",
    }));
}

const codeOf = ({ sharedPrefix = "" }: DescEnum, name: string): string => name.slice(sharedPrefix.length);

const ANYWHERE = [
  "INVALID_QUERY", // bad percent encoding, which even a parameter that is ignored may have
  "INVALID_HEADER",
  "UNKNOWN_FIELD",
  "NOT_ACCEPTABLE",
  "URI_TOO_LONG",
  "HEADERS_TOO_LARGE",
  "INTERNAL",
  "UPSTREAM_ERROR",
  "UNAVAILABLE",
  "OVERLOADED",
  "DEADLINE_EXCEEDED",
];

/** The errors of an operation by status, lowest first. */
export function failuresOf(
  operation: Operation,
  { deprecation }: Pick<Sources, "deprecation">,
  all: readonly Reason[],
): [status: number, reasons: Reason[]][] {
  const { params, paging, body, errors } = operation;
  const has = (header: string) => operation.requestHeaders.some(({ name }) => name === header);
  const when = (condition: unknown, ...codes: string[]) => (condition ? codes : []);
  const codes = new Set([
    ...ANYWHERE,
    ...errors,
    ...when(params.length > 0, "INVALID_ID"),
    ...when(paging, "INVALID_PAGE_TOKEN"),
    ...when(body, "MALFORMED_JSON", "VALIDATION_FAILED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"),
    ...when(has("If-Match") || has("If-None-Match") || isConditional(operation), "ETAG_MISMATCH"),
    ...when(has("Idempotency-Key"), "IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED"),
    ...when(operation.deprecation && deprecation.goneAfterSunset, "ENDPOINT_SUNSET"),
  ]);
  const unknown = [...codes].find((code) => !all.some((reason) => reason.code === code));
  if (unknown) throw new Error(`${operation.method}: ${unknown} is not in the catalogue of errors`);
  return [
    ...Map.groupBy(
      all.filter(({ code }) => codes.has(code)),
      ({ status }) => status,
    ),
  ].sort(([a], [b]) => a - b);
}
