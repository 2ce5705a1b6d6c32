/** The forms that an error can have: google.rpc.Status, a problem (RFC 9457), the record of a catalogue, or one's own. */
import { STATUS_CODES } from "node:http";
import { create, createRegistry, type DescFile, type Registry, toBinary, toJson } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { Code, ConnectError } from "@connectrpc/connect";
import { WELL_KNOWN_FILES } from "../contract/well-known.ts";
import { file_google_rpc_error_details } from "../gen/google/rpc/error_details_pb.ts";
import { JSON_TYPE, PROBLEM_TYPE } from "../policy/media.ts";
import { createErrorExit, type ErrorOptions, type ErrorRecord, type Failure } from "./error-exit.ts";

/** What a caller may know of a failure. */
export interface ErrorDescription {
  /** The HTTP status that it usually has. */
  readonly status: number;
  readonly code: Code;
  /** Such as INVALID_QUERY: the reason in a google.rpc.ErrorInfo, or the name of the code where a service gave none. */
  readonly reason: string;
  readonly message: string;
  /** In proto3 JSON, each with its `@type`. */
  readonly details: readonly DetailJson[];
  /** Fields of HTTP that belong to it, such as Allow and Retry-After, by names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The answer to a request that failed. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The media type of the body. */
  readonly type: string;
}

/** Writes an error. `asProblem`: the caller prefers a problem (RFC 9457), which not every form offers. */
export type ErrorForm = (failure: Failure, asProblem: boolean) => ErrorAnswer;

/**
 * How errors are answered.
 *
 * - `"status"`: a google.rpc.Status in proto3 JSON, or a problem where `Accept` prefers it.
 * - `"problem"`: a problem (RFC 9457) whatever `Accept` says, with `code` and `details` of the google.rpc.Status.
 * - An object with a catalogue: records `{code, message, status}`, or problems where `Accept` prefers them.
 * - A function: what it returns. If it throws, the caller gets a google.rpc.Status, and the process a warning.
 */
export type Errors = "status" | "problem" | CatalogueErrors | ((error: ErrorDescription) => ErrorAnswer);

export interface CatalogueErrors extends ErrorOptions {
  readonly catalogue: NonNullable<ErrorOptions["catalogue"]>;
}

/** Compiles the option. `files` are those of the contract: they have the types of details. */
export function errorForms(errors: Errors, files: () => readonly DescFile[]) {
  if (typeof errors === "object") return { failureOf: createErrorExit(errors), form: recordForm };
  let registry: Registry | undefined;
  const describe = ({ record, headers, grpcCode, details }: Failure): ErrorDescription => {
    const { status, code: reason, message } = record;
    const write = (detail: Parameters<typeof detailJson>[0]) => {
      registry ??= detailTypes(files());
      return detailJson(detail, registry);
    };
    return { status, code: grpcCode, reason, message, details: details().map(write), headers };
  };
  const form: ErrorForm = (failure, asProblem) => {
    const error = describe(failure);
    if (typeof errors === "function") return ownForm(errors, error);
    return asProblem || errors === "problem" ? problemOf(error) : statusOf(error);
  };
  return { failureOf: createErrorExit(), form };
}

function ownForm(write: (error: ErrorDescription) => ErrorAnswer, error: ErrorDescription): ErrorAnswer {
  try {
    return write(error);
  } catch (fault) {
    process.emitWarning(`The option "errors" threw: ${fault}`);
    return statusOf(error);
  }
}

function statusOf({ status, headers, code, message, details }: ErrorDescription): ErrorAnswer {
  return { status, headers, type: JSON_TYPE, body: JSON.stringify({ code, message, details }) };
}

function problemOf({ status, headers, code, reason, message, details }: ErrorDescription): ErrorAnswer {
  const title = STATUS_CODES[status] ?? reason;
  const problem = { type: "about:blank", title, status, detail: message, code, details };
  return { status, headers, type: PROBLEM_TYPE, body: JSON.stringify(problem) };
}

const recordForm: ErrorForm = ({ record, headers }, asProblem) => ({
  status: record.status,
  headers,
  ...errorBody(record, asProblem),
});

/** The body of an error of a catalogue. A problem (RFC 9457) has the members of the record beside its own. */
export function errorBody({ code, message, status }: ErrorRecord, asProblem: boolean): { type: string; body: string } {
  if (!asProblem) return { type: JSON_TYPE, body: JSON.stringify({ code, message, status }) };
  const problem = { type: "about:blank", title: STATUS_CODES[status] ?? code, detail: message, status, code, message };
  return { type: PROBLEM_TYPE, body: JSON.stringify(problem) };
}

/** One detail: `@type`, and the members of the message. */
export type DetailJson = Readonly<Record<string, unknown>>;

/** The types that are written member by member: those of the contract, those of google.rpc, and the well-known ones. */
export const detailTypes = (files: readonly DescFile[]): Registry => createRegistry(...KNOWN, ...files);

const KNOWN = [...WELL_KNOWN_FILES, file_google_rpc_error_details, ViolationsSchema];

/**
 * Writes a detail. One of a type that the registry lacks, or that does not hold what its type says, is kept as it came:
 * `{"@type": "type.googleapis.com/acme.Hint", "value": "CgFh"}`, the bytes in base64.
 */
function detailJson(detail: ConnectError["details"][number], registry: Registry): DetailJson {
  const any = anyOf(detail);
  try {
    return toJson(AnySchema, any, { registry }) as DetailJson;
  } catch {
    return { "@type": any.typeUrl, value: Buffer.from(any.value).toString("base64") };
  }
}

function anyOf(detail: ConnectError["details"][number]): Any {
  const [type, value] =
    "desc" in detail
      ? [detail.desc.typeName, toBinary(detail.desc, create(detail.desc, detail.value))]
      : [detail.type, detail.value];
  return create(AnySchema, { typeUrl: `type.googleapis.com/${type}`, value });
}
