/** The bodies of errors, in the form that they have: their schemas, examples and media types. */
import { createErrorExit } from "../errors/error-exit.ts";
import { errorBody, errorForms } from "../errors/forms.ts";
import { codeNamed, HttpError, type Reason } from "../errors/http-error.ts";
import { JSON_TYPE, PROBLEM_TYPE } from "../policy/media.ts";
import type { Errors } from "./failures.ts";
import type { JsonObject } from "./json.ts";

/** What stands for the forms in a document. */
export interface ErrorBodies {
  /** Components by name. */
  readonly schemas: JsonObject;
  /** The schema of an error within a stream. */
  readonly inStream: JsonObject | undefined;
  /** The content of a response with any of these reasons; undefined where nothing is known of it. */
  readonly contentOf: (status: number, reasons: readonly Reason[]) => JsonObject | undefined;
  /** How an error with this reason looks; real messages also say where. */
  readonly exampleOf: ((reason: Reason) => JsonObject) | undefined;
}

export function errorBodies({ form, reasons }: Errors): ErrorBodies {
  switch (form) {
    case "record":
      return records(reasons);
    case "status":
      return statuses();
    case "problem":
      return problems();
    case "unknown":
      return { schemas: {}, inStream: undefined, contentOf: () => undefined, exampleOf: undefined };
  }
}

const refer = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });

const examplesOf = (reasons: readonly Reason[]): JsonObject =>
  Object.fromEntries(reasons.map(({ code }) => [code, refer("examples", code)]));

function records(reasons: readonly Reason[]): ErrorBodies {
  const members: JsonObject = {
    code: {
      type: "string",
      description: "What went wrong, for programs. It never changes its meaning.",
      enum: reasons.map(({ code }) => code),
    },
    message: { type: "string", description: "What was wrong and where, for people." },
    status: STATUS,
  };
  const schemas = {
    Error: {
      description: `The answer to a request that failed.\n\n${list(reasons)}`,
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
      examples: reasons.slice(0, 1).map(recordAsProblem),
    },
  };
  return {
    schemas,
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
    exampleOf: ({ code, status, meaning }) => ({ code, message: meaning, status }),
  };
}

const recordAsProblem = ({ code, meaning, status }: Reason): JsonObject =>
  JSON.parse(errorBody({ code, message: meaning, status }, true).body);

const list = (reasons: readonly Reason[]): string =>
  reasons.map(({ code, status, meaning }) => `- \`${code}\` (${status}): ${meaning}`).join("\n");

const statuses = (): ErrorBodies => ({
  schemas: {
    Status: {
      description: "The answer to a request that failed: a `google.rpc.Status`.",
      type: "object",
      properties: { code: CODE, message: MESSAGE, details: DETAILS },
      required: ["code", "message", "details"],
    },
    Problem: {
      description: "An error as a problem (RFC 9457), sent when the header Accept prefers its media type.",
      ...PROBLEM_OF_STATUS,
    },
  },
  inStream: refer("schemas", "Status"),
  contentOf: (_, reasons) => ({
    [JSON_TYPE]: { schema: refer("schemas", "Status"), examples: examplesOf(reasons) },
    [PROBLEM_TYPE]: { schema: refer("schemas", "Problem") },
  }),
  exampleOf: exampleIn("status"),
});

const problems = (): ErrorBodies => ({
  schemas: {
    Problem: { description: "The answer to a request that failed: a problem (RFC 9457).", ...PROBLEM_OF_STATUS },
  },
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
    const failure = failureOf(new HttpError(code, meaning), REQUEST_ID);
    const grpcCode = codeNamed.get(code);
    const { body } = write(grpcCode === undefined ? failure : { ...failure, grpcCode, details: () => [] }, false);
    return JSON.parse(body);
  };
}

const REQUEST_ID = "4bf92f3577b34da6a3ce929d0e0e4736";

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
const PROBLEM_OF_STATUS: JsonObject = {
  type: "object",
  properties: { ...PROBLEM, detail: MESSAGE, status: STATUS, code: CODE, details: DETAILS },
  required: ["type", "title", "status", "detail", "code", "details"],
};
