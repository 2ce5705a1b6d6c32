/** Values that their fields don't allow, and rules (buf.validate) that are broken: errors that say where in the request it is. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { FieldPathElement, Violation } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { MOST_NESTED } from "../contract/codec.ts";
import { isOutputOnly } from "../contract/fields.ts";
import type { Operation } from "../contract/operation.ts";
import { excerpt, firstOf, HttpError, joinFirst } from "./http-error.ts";

type SchemaErrorCode = "VALIDATION_FAILED" | "UNKNOWN_FIELD" | "MALFORMED_JSON";

/** A value that its field does not allow. On the way up, each value that contains it adds its own step to the path. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly code: SchemaErrorCode;
  #path = "";

  /** `problem` completes a sentence that begins with the field's name: "must be an integer". */
  constructor(problem: string, code: SchemaErrorCode = "VALIDATION_FAILED") {
    super(problem);
    this.code = code;
  }

  /** "categoryId: must be an integer", or "The body must be an object" where no step leads to the value. */
  get sentence(): string {
    return this.#path === "" ? `The body ${this.message}` : `${this.#path}: ${this.message}`;
  }

  /** Where the value is; empty where no step leads to it. */
  get path(): string {
    return this.#path;
  }

  under(step: string): this {
    this.#path = this.#path === "" || this.#path.startsWith("[") ? step + this.#path : `${step}.${this.#path}`;
    return this;
  }
}

/** Runs `read`; an error in it is told as one under `step`, a member's name or an index in brackets. */
export function under<T>(step: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof SchemaError ? error.under(step) : error;
  }
}

export const tooDeep = () =>
  new SchemaError(`is nested too deeply: no more than ${MOST_NESTED} messages may be within one another`);

/** What is wrong with a name of a field that is also given by another of its names. */
export const givenAs = (other: string): string => `is another name of ${other}, which is given too`;

/** The parts of a request, in the order in which they are checked. */
export const PARTS = ["header", "path", "query", "body"] as const;
export type RequestPart = (typeof PARTS)[number];

const CODES = {
  header: "INVALID_HEADER",
  path: "INVALID_ID",
  query: "INVALID_QUERY",
  body: "VALIDATION_FAILED",
} as const satisfies Record<RequestPart, string>;

/**
 * The error for the first of the `parts` that has violations: it names the first ten and counts the rest. Undefined if there
 * are none. Violations in fields that the service itself sets are left out.
 */
export function violationError(
  operation: Operation,
  violations: readonly Violation[],
  parts: readonly RequestPart[] = PARTS,
): HttpError | undefined {
  const located = violations.flatMap((violation) => {
    const steps = resolve(operation.method.input, violation.field?.elements ?? []);
    if (steps.some(({ field }) => field && isOutputOnly(field))) return [];
    const { part, path } = locate(operation, steps);
    const problem = violation.message.replace(/^value /, "");
    const isPageToken = operation.paging !== undefined && steps[0]?.field === operation.paging.pageToken;
    const code = isPageToken ? "INVALID_PAGE_TOKEN" : CODES[part];
    const sentence = path === "" ? problem : `${path}: ${problem}`;
    return [{ part, code, sentence, violations: path === "" ? [] : [{ field: path, description: problem }] }];
  });
  for (const part of parts) {
    const here = located.filter((one) => one.part === part);
    if (!here[0]) continue;
    const message = joinFirst(here.map(({ sentence }) => sentence));
    return new HttpError(here[0].code, message, {}, undefined, firstOf(here.flatMap((one) => one.violations)));
  }
  return undefined;
}

interface Step {
  readonly field: DescField | undefined;
  /** The JSON name, with the index or key of an element. */
  readonly text: string;
}

function resolve(root: DescMessage, elements: readonly FieldPathElement[]): Step[] {
  let message: DescMessage | undefined = root;
  return elements.map(({ fieldName, subscript }) => {
    const field: DescField | undefined = message?.fields.find(({ name }) => name === fieldName);
    message = field?.message;
    const key = typeof subscript.value === "string" ? JSON.stringify(excerpt(subscript.value)) : subscript.value;
    return { field, text: (field?.jsonName ?? fieldName) + (subscript.case === undefined ? "" : `[${key}]`) };
  });
}

function locate(operation: Operation, steps: readonly Step[]): { part: RequestPart; path: string } {
  const root = steps[0]?.field;
  // A oneof is in the same part of the request as its fields.
  const placed = root ?? operation.method.input.oneofs.find(({ name }) => name === steps[0]?.text)?.fields[0];
  const path = steps.map(({ text }) => text).join(".");
  const header = operation.requestHeaders.find(({ field }) => field === root);
  if (header) return { part: "header", path: header.name };
  if (operation.params.some((param) => param.every((field, i) => field === steps[i]?.field)))
    return { part: "path", path };
  const { body } = operation;
  if (!body || (placed && operation.query.includes(placed))) return { part: "query", path };
  if (body?.kind !== "field" || body.field !== root) return { part: "body", path };
  const within = steps
    .slice(1)
    .map(({ text }) => text)
    .join(".");
  const subscript = steps[0]?.text.slice(root.jsonName.length) ?? "";
  return { part: "body", path: subscript + (subscript && within ? "." : "") + within };
}
