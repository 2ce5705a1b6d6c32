/** Which errors an operation can answer with: its own, and those that follow from what it takes; and how their bodies look. */
import type { Operation } from "../contract/operation.ts";
import { createErrorExit } from "../errors/error-exit.ts";
import { errorBody, errorForms } from "../errors/forms.ts";
import { codeNamed, HttpError, type Reason, reasonsOf } from "../errors/http-error.ts";
import { isConditional } from "../policy/conditional.ts";
import { JSON_TYPE, PROBLEM_TYPE } from "../policy/media.ts";
import { type JsonObject, refer } from "./json.ts";
import type { Sources } from "./sources.ts";

/** What a document tells of errors. */
export type Errors = ReturnType<typeof errorsOf>;

export const errorsOf = ({ reasons, errors, docs }: Pick<Sources, "reasons" | "errors" | "docs">) => ({
  /** In the order of the catalogue. */
  reasons: reasonsOf(reasons, docs),
  /** Of their bodies. Records have the reasons of a catalogue and no others; otherwise services may give any reason. */
  form: reasons ? ("record" as const) : (errors ?? "status"),
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

export type Failure = ReturnType<typeof failuresOf>[number];

/**
 * The errors of an operation and `more`, by status, lowest first. Without a catalogue that is everything that gRPC has a code for.
 *
 * @throws Error when it names an error that the catalogue does not have
 */
export function failuresOf(
  operation: Operation,
  { deprecation, security }: Pick<Sources, "deprecation" | "security">,
  { reasons: all, form }: Errors,
  more: readonly string[],
) {
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
  const told = all.filter(({ code }) => codes.has(code));
  return [...new Set(told.map(({ status }) => status))]
    .sort((a, b) => a - b)
    .map((status) => {
      const reasons = told.filter((reason) => reason.status === status);
      const own = reasons.filter(({ code }) => !ofHttp.includes(code) && !ofGrpc.includes(code));
      const others = reasons.filter(({ code }) => ofHttp.includes(code));
      // Of the reasons that not every operation has, if there are any.
      const name = nameOf([own, others, reasons].find(({ length }) => length > 0) ?? []);
      return { status, reasons, name };
    });
}

/** Such as "PetNotFoundOrCategoryNotFound". */
const nameOf = (reasons: readonly Reason[]): string =>
  reasons
    .map(({ code }) => code.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase()))
    .join("Or");

/** What stands for the forms in a document. */
export interface ErrorBodies {
  /** Components by name. */
  readonly schemas: JsonObject;
  /** The schema of an error within a stream. */
  readonly inStream?: JsonObject;
  /** The content of a response with any of these reasons; undefined where nothing is known of it. */
  readonly contentOf: (status: number, reasons: readonly Reason[]) => JsonObject | undefined;
  /** How an error with this reason looks; real messages also say where. */
  readonly exampleOf?: (reason: Reason) => JsonObject;
}

export function errorBodies({ form, reasons }: Errors): ErrorBodies {
  if (form === "unknown") return { schemas: {}, contentOf: () => undefined };
  return form === "record" ? records(reasons) : form === "status" ? statuses() : problems();
}

/** The examples that the responses refer to. */
export function failureExamples(failures: readonly Failure[], { exampleOf }: ErrorBodies): JsonObject {
  const reasons = failures.flatMap((failure) => failure.reasons);
  return Object.fromEntries(exampleOf ? reasons.map((reason) => [reason.code, { value: exampleOf(reason) }]) : []);
}

const examplesOf = (reasons: readonly Reason[]): JsonObject =>
  Object.fromEntries(reasons.map(({ code }) => [code, refer("examples", code)]));

function records(reasons: readonly Reason[]): ErrorBodies {
  const members: JsonObject = {
    code: {
      type: "string",
      description: "What went wrong, for programs. It never changes its meaning.",
      enum: reasons.map(({ code }) => code),
    },
    message: MESSAGE,
    status: STATUS,
  };
  const list = reasons.map(({ code, status, meaning }) => `- \`${code}\` (${status}): ${meaning}`).join("\n");
  const exampleOf = ({ code, status, meaning }: Reason) => ({ code, message: meaning, status });
  return {
    schemas: {
      Error: {
        description: `The answer to a request that failed.\n\n${list}`,
        type: "object",
        properties: members,
        required: ["code", "message", "status"],
        additionalProperties: false,
      },
      Problem: {
        description: "An error as a problem (RFC 9457), sent when the header Accept names its media type.",
        type: "object",
        properties: { ...PROBLEM, ...members },
        required: ["type", "title", "detail", "status", "code", "message"],
        additionalProperties: false,
        examples: reasons.slice(0, 1).map((reason) => JSON.parse(errorBody(exampleOf(reason), true).body)),
      },
    },
    inStream: refer("schemas", "Error"),
    contentOf: (status, some) => {
      const schema = {
        allOf: [refer("schemas", "Error")],
        type: "object",
        properties: {
          status: { type: "integer", const: status },
          code: { type: "string", enum: some.map(({ code }) => code) },
        },
      };
      // A problem holds the same members.
      return {
        [JSON_TYPE]: { schema, examples: examplesOf(some) },
        [PROBLEM_TYPE]: { schema: refer("schemas", "Problem") },
      };
    },
    exampleOf,
  };
}

const statuses = (): ErrorBodies => ({
  schemas: {
    Status: {
      description: "The answer to a request that failed: a `google.rpc.Status`.",
      type: "object",
      properties: { code: CODE, message: MESSAGE, details: DETAILS },
      required: ["code", "message", "details"],
    },
    Problem: problem("An error as a problem (RFC 9457), sent when the header Accept prefers its media type."),
  },
  inStream: refer("schemas", "Status"),
  contentOf: (_, reasons) => ({
    [JSON_TYPE]: { schema: refer("schemas", "Status"), examples: examplesOf(reasons) },
    [PROBLEM_TYPE]: { schema: refer("schemas", "Problem") },
  }),
  exampleOf: exampleIn("status"),
});

const problems = (): ErrorBodies => ({
  schemas: { Problem: problem("The answer to a request that failed: a problem (RFC 9457).") },
  inStream: refer("schemas", "Problem"),
  contentOf: (_, reasons) => ({
    [PROBLEM_TYPE]: { schema: refer("schemas", "Problem"), examples: examplesOf(reasons) },
  }),
  exampleOf: exampleIn("problem"),
});

/** As the transcoder itself sends it; or, with a reason that only gRPC has, as a service does that says no more. */
function exampleIn(form: "status" | "problem"): (reason: Reason) => JsonObject {
  const { form: write } = errorForms(form, () => []);
  const failureOf = createErrorExit();
  return ({ code, meaning }) => {
    const failure = failureOf(new HttpError(code, meaning), EXAMPLE_ID);
    const grpcCode = codeNamed.get(code);
    const { body } = write(grpcCode === undefined ? failure : { ...failure, grpcCode, details: () => [] }, false);
    return JSON.parse(body);
  };
}

/** What requests are called in examples. */
export const EXAMPLE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";

const STATUS: JsonObject = { type: "integer", description: "The HTTP status code.", minimum: 400, maximum: 599 };
const MESSAGE: JsonObject = { type: "string", description: "What was wrong and where, for people." };
const CODE: JsonObject = {
  type: "integer",
  description: "The `google.rpc.Code`, such as 5 for NOT_FOUND.",
  minimum: 1,
  maximum: 16,
};
const DETAILS: JsonObject = {
  type: "array",
  description:
    "More about the error, such as a `google.rpc.ErrorInfo` with its reason or a `google.rpc.BadRequest` with the fields that are wrong.",
  items: {
    type: "object",
    properties: {
      "@type": { type: "string", description: "Names the type, as in `type.googleapis.com/google.rpc.ErrorInfo`." },
    },
    required: ["@type"],
    additionalProperties: true,
  },
};
const PROBLEM: JsonObject = {
  type: { type: "string", const: "about:blank" },
  title: { type: "string", description: "The name of the status code." },
  detail: { type: "string", description: "The same as message." },
};
const problem = (description: string): JsonObject => ({
  description,
  type: "object",
  properties: { ...PROBLEM, detail: MESSAGE, status: STATUS, code: CODE, details: DETAILS },
  required: ["type", "title", "status", "detail", "code", "details"],
});
