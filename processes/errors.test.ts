/** Anything that can be thrown, and the record that comes of it. */
import { create } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  createErrorExit,
  errorBody,
  HttpError,
  type Operation,
  operationsOf,
  UpstreamFailure,
} from "connect-transcoder";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { describe, expect, test } from "vitest";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { errorOptions } from "./errors.ts";

const failureOf = createErrorExit(errorOptions);
const operations = operationsOf(PetService);
const operation = (id: string) => operations.find((one) => one.id === id) as Operation;

const INTERNAL = { code: "INTERNAL", message: "Something went wrong in the petstore. Quote request r-1.", status: 500 };

/** An error as a service sends it. */
function reasoned(reason: string, message: string, path?: string, headers?: HeadersInit): ConnectError {
  const details: ConstructorParameters<typeof ConnectError>[3] = [
    { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason, domain: "petstore" }) },
  ];
  if (path) {
    const elements = path.split(".").map((fieldName) => ({ fieldName }));
    const violations = [{ field: { elements }, message }];
    details.push({ desc: ViolationsSchema, value: create(ViolationsSchema, { violations }) });
  }
  return new ConnectError(path ? `${path}: ${message}` : message, Code.Unknown, headers, details);
}

const upstream = (cause: unknown, id = "getPet") => failureOf(new UpstreamFailure(operation(id), cause), "r-1");

describe("not from a service", () => {
  test("an error goes out as it is, with its headers", () => {
    const failure = failureOf(new HttpError("METHOD_NOT_ALLOWED", "No.", { allow: "GET" }), "r-1");
    expect(failure).toMatchObject({
      record: { code: "METHOD_NOT_ALLOWED", message: "No.", status: 405 },
      headers: { allow: "GET" },
    });
  });

  test.each([
    ["an error", new Error("at /srv/secret.ts:1")],
    ["an error with a status", Object.assign(new Error("secret"), { statusCode: 400 })],
    ["a string", "secret"],
    ["nothing", undefined],
    ["null", null],
    ["an object that bites", { toString: (): string => "secret", code: {} }],
    ["an error with a code of no catalogue", new HttpError("SECRET", "secret")],
    ["an RPC error that no call gave", new ConnectError("secret", Code.NotFound)],
  ])("%s is INTERNAL and tells nothing", (_what, thrown) => {
    expect(failureOf(thrown, "r-1")).toMatchObject({ record: INTERNAL, headers: {} });
  });

  test.each([
    ["FST_ERR_CTP_BODY_TOO_LARGE", "PAYLOAD_TOO_LARGE", 413],
    ["FST_ERR_CTP_INVALID_MEDIA_TYPE", "UNSUPPORTED_MEDIA_TYPE", 415],
    ["FST_ERR_BAD_URL", "ROUTE_NOT_FOUND", 404],
    ["ECONNRESET", "INVALID_HEADER", 400],
  ])("Fastify's %s is %s", (code, reason, status) => {
    const { record } = failureOf(Object.assign(new Error("x"), { code }), "r-1");
    expect(record).toMatchObject({ code: reason, status });
  });

  test("a plugin's 404 is ROUTE_NOT_FOUND", () => {
    expect(failureOf(Object.assign(new Error("x"), { statusCode: 404 }), "r-1").record.code).toBe("ROUTE_NOT_FOUND");
  });
});

describe("with a service's reason", () => {
  test("every reason of the catalogue has its status, and its message goes on", () => {
    for (const { name } of ErrorReasonSchema.values.filter(({ number }) => number > 0)) {
      const code = name.replace("ERROR_REASON_", "");
      const { record } = upstream(reasoned(code, "It is so."));
      expect(record.code).toBe(code);
      expect(record.status).toBeGreaterThanOrEqual(400);
      if (record.status !== 500) expect(record.message).toBe("It is so.");
    }
    expect(upstream(reasoned("PET_NOT_FOUND", "x")).record.status).toBe(404);
    expect(upstream(reasoned("ETAG_MISMATCH", "x")).record.status).toBe(412);
    expect(upstream(reasoned("IDEMPOTENCY_KEY_REUSED", "x")).record.status).toBe(422);
  });

  test("INTERNAL has a fixed text", () => {
    expect(upstream(reasoned("INTERNAL", "driver says E11000")).record).toEqual(INTERNAL);
  });

  test("a reason that the catalogue does not know is UPSTREAM_ERROR", () => {
    for (const reason of ["NEW_REASON", "UNSPECIFIED", "", "__proto__"])
      expect(upstream(reasoned(reason, "secret")).record).toMatchObject({
        code: "UPSTREAM_ERROR",
        status: 502,
        message: "A service gave an answer that can't be understood.",
      });
  });

  test("a reason of another domain does not count", () => {
    const info = create(ErrorInfoSchema, { reason: "PET_NOT_FOUND", domain: "elsewhere" });
    const error = new ConnectError("x", Code.NotFound, undefined, [{ desc: ErrorInfoSchema, value: info }]);
    expect(upstream(error).record.code).toBe("UPSTREAM_ERROR");
  });

  test.each([
    ["replacePet", "VALIDATION_FAILED", "pet.category_id", "VALIDATION_FAILED", "categoryId: must be x"],
    ["replacePet", "VALIDATION_FAILED", "etag", "INVALID_HEADER", "If-Match: must be x"],
    ["createPet", "VALIDATION_FAILED", "request_id", "INVALID_HEADER", "Idempotency-Key: must be x"],
    ["getPet", "VALIDATION_FAILED", "pet_id", "INVALID_ID", "petId: must be x"],
    ["listPets", "VALIDATION_FAILED", "category_id", "INVALID_QUERY", "categoryId: must be x"],
    ["updatePet", "VALIDATION_FAILED", "update_mask", "VALIDATION_FAILED", "updateMask: must be x"],
    ["createPet", "CATEGORY_NOT_FOUND", "pet.category_id", "CATEGORY_NOT_FOUND", "categoryId: must be x"],
  ])("%s: %s at %s is %s", (id, reason, path, code, message) => {
    expect(upstream(reasoned(reason, "must be x", path), id).record).toMatchObject({ code, message });
  });

  test("503 and 429 say when to try again, in the service's words if it has any", () => {
    expect(upstream(reasoned("UNAVAILABLE", "x")).headers).toEqual({ "retry-after": "1" });
    expect(upstream(reasoned("OVERLOADED", "x", undefined, { "retry-after": "7" })).headers).toEqual({
      "retry-after": "7",
    });
    expect(upstream(reasoned("RATE_LIMITED", "x", undefined, { "retry-after": "x\r\n".trim() })).headers).toEqual({
      "retry-after": "1",
    });
    expect(upstream(reasoned("PET_NOT_FOUND", "x")).headers).toEqual({});
  });
});

test.each([[Code.Unavailable], [Code.Aborted], [Code.ResourceExhausted], [Code.DeadlineExceeded]])(
  "only a write that nobody answered may have happened (%s)",
  (code) => {
    const text = (id: string) => upstream(new ConnectError("x", code), id).record.message;
    expect([text("getPet"), text("listPets")].join()).not.toContain("write");
    for (const id of ["createPet", "updatePet", "deletePet"])
      expect(text(id)).toContain("A write may or may not have happened.");
  },
);

test.each([
  [Code.Unavailable, "UNAVAILABLE", 503],
  [Code.Aborted, "UNAVAILABLE", 503],
  [Code.Canceled, "UNAVAILABLE", 503],
  [Code.ResourceExhausted, "UNAVAILABLE", 503],
  [Code.DeadlineExceeded, "DEADLINE_EXCEEDED", 504],
  [Code.Internal, "INTERNAL", 500],
  [Code.DataLoss, "INTERNAL", 500],
  [Code.Unknown, "UPSTREAM_ERROR", 502],
  [Code.Unimplemented, "UPSTREAM_ERROR", 502],
  [Code.NotFound, "UPSTREAM_ERROR", 502],
  [Code.Unauthenticated, "UPSTREAM_ERROR", 502],
])("an RPC error without a reason, code %i, is %s", (code, reason, status) => {
  const { record } = upstream(new ConnectError("driver says E11000", code));
  expect(record).toMatchObject({ code: reason, status });
  expect(record.message).not.toContain("E11000");
});

test("an answer that makes no sense: 502 after a read; after a write nobody knows, so 503", () => {
  expect(upstream(new TypeError("x")).record.code).toBe("UPSTREAM_ERROR");
  expect(upstream(new TypeError("x"), "createPet").record.code).toBe("UNAVAILABLE");
});

test("both forms of a body", () => {
  const record = { code: "PET_NOT_FOUND", message: "Gone.", status: 404 };
  expect(JSON.parse(errorBody(record, false).body)).toEqual(record);
  expect(errorBody(record, true).type).toBe("application/problem+json");
  expect(JSON.parse(errorBody(record, true).body)).toEqual({
    ...record,
    type: "about:blank",
    title: "Not Found",
    detail: "Gone.",
  });
});
