/** Which errors an operation can answer with: its own, and those that follow from what it takes. */
import type { Operation } from "../contract/operation.ts";
import { codeNamed, type Reason, reasonsOf } from "../errors/http-error.ts";
import { isConditional } from "../policy/conditional.ts";
import { groupBy } from "./group-by.ts";
import type { Sources } from "./sources.ts";

/** What a document tells of errors. */
export interface Errors {
  /** In the order of the catalogue. */
  readonly reasons: readonly Reason[];
  /** Of their bodies. Records have the reasons of a catalogue and no others; otherwise services may give any reason. */
  readonly form: "record" | "status" | "problem" | "unknown";
}

export const errorsOf = ({ reasons, errors, docs }: Pick<Sources, "reasons" | "errors" | "docs">): Errors => ({
  reasons: reasonsOf(reasons, docs),
  form: reasons ? "record" : (errors ?? "status"),
});

/** Codes by which this package and its services speak of what HTTP has in common, as far as the catalogue has them. */
const ANYWHERE = [
  "INVALID_QUERY", // bad percent encoding, which even a parameter that is ignored may have
  "INVALID_HEADER",
  "UNKNOWN_FIELD",
  "NOT_ACCEPTABLE",
  "REQUEST_TIMEOUT",
  "MISDIRECTED_REQUEST",
  "URI_TOO_LONG",
  "HEADERS_TOO_LARGE",
  "INTERNAL",
  "NOT_IMPLEMENTED",
  "UPSTREAM_ERROR",
  "UNAVAILABLE",
  "OVERLOADED",
  "DEADLINE_EXCEEDED",
];

export interface Failure {
  readonly status: number;
  readonly reasons: readonly Reason[];
  /** Such as "PetNotFoundOrCategoryNotFound": of the reasons that not every operation has, if there are any. */
  readonly name: string;
}

/**
 * The errors of an operation and `more`, by status, lowest first. Without a catalogue that is everything that gRPC has a code for.
 *
 * @throws Error when it names an error that the catalogue does not have
 */
export function failuresOf(
  operation: Operation,
  { deprecation, security }: Pick<Sources, "deprecation" | "security">,
  { reasons: all, form }: Errors,
  more: readonly string[] = [],
): Failure[] {
  const { params, paging, body, errors } = operation;
  const has = (header: string) => operation.requestHeaders.some(({ name }) => name === header);
  const when = (condition: unknown, ...codes: string[]) => (condition ? codes : []);
  const ofHttp = [...ANYWHERE, ...more];
  const ofGrpc = when(form !== "record", ...codeNamed.keys());
  const codes = new Set([
    ...ofHttp,
    ...errors,
    ...ofGrpc,
    ...when(security, "UNAUTHENTICATED", "PERMISSION_DENIED"),
    ...when(params.length > 0, "INVALID_ID"),
    ...when(paging, "INVALID_PAGE_TOKEN"),
    ...when(body, "MALFORMED_JSON", "VALIDATION_FAILED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"),
    ...when(has("If-Match") || has("If-None-Match") || isConditional(operation), "ETAG_MISMATCH"),
    ...when(has("Idempotency-Key"), "IDEMPOTENCY_KEY_REUSED"),
    ...when(operation.deprecation && deprecation.goneAfterSunset, "ENDPOINT_SUNSET"),
  ]);
  const unknown = [...errors, ...more].find((code) => !all.some((reason) => reason.code === code));
  if (unknown) throw new Error(`${operation.method}: ${unknown} is not in the catalogue of errors`);
  const groups = groupBy(
    all.filter(({ code }) => codes.has(code)),
    ({ status }) => status,
  );
  return [...groups]
    .map(([status, reasons]) => {
      const own = reasons.filter(({ code }) => !ofHttp.includes(code) && !ofGrpc.includes(code));
      const others = reasons.filter(({ code }) => ofHttp.includes(code));
      return { status, reasons, name: nameOf([own, others, reasons].find(({ length }) => length > 0) ?? []) };
    })
    .sort((a, b) => a.status - b.status);
}

const nameOf = (reasons: readonly Reason[]): string =>
  reasons
    .map(({ code }) => code.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase()))
    .join("Or");
