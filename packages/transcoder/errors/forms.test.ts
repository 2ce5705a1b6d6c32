/** Errors as callers get them: google.rpc.Status, problems, and one's own form. */
import { create } from "@bufbuild/protobuf";
import { DurationSchema, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterEach, describe, expect, test } from "vitest";
import { compileLibrary, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import type { Errors, TranscoderOptions } from "../index.ts";

const files = compileLibrary();
const service = serviceOf(files, "foreign.library.v1.LibraryService");
const book = service.method.getBook?.output as (typeof service.methods)[number]["output"];

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

/** Asks for a book of a library that fails so. */
async function fail(error: unknown, errors: Errors | undefined, init?: RequestInit, path = "/books/1") {
  const getBook = () => {
    throw error;
  };
  server = await serve(service, { getBook } as object, { errors } as Partial<TranscoderOptions>);
  return server.call(path, init);
}

const info = { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason: "BOOK_LENT", domain: "library" }) };
const infoJson = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "BOOK_LENT", domain: "library" };
const own = (reason: string) => ({
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason,
  domain: "connect-transcoder",
});

describe("a service's error is a google.rpc.Status", () => {
  test("by default, with all its details: known types by their members, others by their bytes", async () => {
    const retry = create(RetryInfoSchema, { retryDelay: create(DurationSchema, { seconds: 2n, nanos: 1 }) });
    const error = new ConnectError("It is lent.", Code.FailedPrecondition, undefined, [
      info,
      { desc: RetryInfoSchema, value: retry },
      { desc: StringValueSchema, value: create(StringValueSchema, { value: "wrapped" }) },
      { desc: book, value: create(book, { isbn: 2n ** 60n } as never) },
    ]);
    const of = (type: string, value: Uint8Array) => ({ type, value });
    error.details.push(of("acme.Hint", new Uint8Array([10, 1, 97])) as never);
    error.details.push(of("google.rpc.ErrorInfo", new Uint8Array([255])) as never);
    const answer = await fail(error, undefined);
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(answer.headers.get("retry-after")).toBe("3");
    expect(answer.record()).toEqual({
      code: 9,
      message: "It is lent.",
      details: [
        infoJson,
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "2.000000001s" },
        { "@type": "type.googleapis.com/google.protobuf.StringValue", value: "wrapped" },
        { "@type": "type.googleapis.com/foreign.library.v1.Book", isbn: "1152921504606846976" },
        { "@type": "type.googleapis.com/acme.Hint", value: "CgFh" },
        { "@type": "type.googleapis.com/google.rpc.ErrorInfo", value: "/w==" },
      ],
    });
  });

  test.each([Code.Unknown, Code.Internal, Code.DataLoss])(
    "code %i keeps its words, but not its details",
    async (code) => {
      const answer = await fail(new ConnectError("secret", code, undefined, [info]), "status");
      const id = answer.headers.get("x-request-id");
      expect(answer.status).toBe(500);
      expect(answer.record()).toEqual({
        code,
        message: `Something went wrong. Quote request ${id}.`,
        details: [infoJson],
      });
    },
  );

  test.each([Code.Unavailable, Code.DeadlineExceeded, Code.ResourceExhausted])(
    "code %i is passed on in the service's words",
    async (code) => {
      const answer = await fail(new ConnectError("said the library", code), "status");
      expect(answer.record()).toEqual({ code, message: "said the library", details: [] });
    },
  );

  test("a rule that the service found broken is told by its place in the request", async () => {
    const { ViolationsSchema, ViolationSchema, FieldPathSchema } = await import(
      "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"
    );
    const field = create(FieldPathSchema, { elements: [{ fieldName: "isbn" }] });
    const value = create(ViolationsSchema, {
      violations: [create(ViolationSchema, { field, message: "value must be odd" })],
    });
    const error = new ConnectError("no", Code.InvalidArgument, undefined, [{ desc: ViolationsSchema, value }]);
    expect((await fail(error, "status")).record()).toMatchObject({
      code: 3,
      message: "isbn: must be odd",
      details: [
        { "@type": "type.googleapis.com/buf.validate.Violations" },
        {
          "@type": "type.googleapis.com/google.rpc.BadRequest",
          fieldViolations: [{ field: "isbn", description: "must be odd" }],
        },
      ],
    });
  });
});

describe("the transcoder's own errors", () => {
  test.each([
    ["/nowhere", {}, 404, 5, "ROUTE_NOT_FOUND"],
    ["/books/1", { method: "POST" }, 405, 12, "METHOD_NOT_ALLOWED"],
    ["/books/1", { headers: { accept: "text/html" } }, 406, 3, "NOT_ACCEPTABLE"],
    [
      "/sort",
      { method: "POST", body: "[]", headers: { "content-type": "text/plain" } },
      415,
      3,
      "UNSUPPORTED_MEDIA_TYPE",
    ],
    [`/books/1?${"x".repeat(9000)}`, {}, 414, 3, "URI_TOO_LONG"],
    ["/sort", { method: "POST", body: "[", headers: { "content-type": "application/json" } }, 400, 3, "MALFORMED_JSON"],
  ])("%.20s %j is a Status with its reason", async (path, init, status, code, reason) => {
    const answer = await fail(undefined, "status", init as RequestInit, path);
    expect(answer.status).toBe(status);
    expect(answer.record()).toEqual({ code, message: expect.any(String), details: [own(reason)] });
  });

  test.each([
    ["/books/x", {}, "isbn", "must be an integer"],
    ["/books?shelf=1&limit=a", {}, "limit", "must be an integer"],
    ["/shelves/1000/books", { method: "POST", body: "{}" }, "shelf", "must be less than 1000"],
    ["/books/1", { headers: { "if-match": "x" } }, "If-Match", 'must be * or a list of entity tags such as "3"'],
    ["/cards/3", { method: "PUT", body: '{"keeper":{"name":1}}' }, "keeper.name", "must be a string"],
  ])("%s %j names the field", async (path, init, field, description) => {
    const headers = { "content-type": "application/json" };
    const answer = await fail(undefined, "status", { headers, ...init }, path);
    expect(answer.record()).toMatchObject({
      code: 3,
      message: `${field}: ${description}`,
      details: [
        {},
        { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [{ field, description }] },
      ],
    });
  });
});

describe("a problem", () => {
  const problem = {
    type: "about:blank",
    title: "Not Found",
    status: 404,
    detail: "There is none.",
    code: 5,
    details: [infoJson],
  };
  const error = new ConnectError("There is none.", Code.NotFound, undefined, [info]);

  test.each([
    ["problem", "application/json"],
    ["problem", "*/*"],
    ["status", "application/problem+json"],
    ["status", "application/json, application/problem+json"],
  ] as const)("is the form of %j to Accept: %s", async (errors, accept) => {
    const answer = await fail(error, errors, { headers: { accept } });
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(answer.record()).toEqual(problem);
  });
});

test("a function makes its own form, of a request that was none, too", async () => {
  const errors: Errors = ({ status, headers, code, reason, message, details }) => ({
    status: status + 1,
    headers: { ...headers, "x-code": String(code) },
    body: `<e>${reason}: ${message} (${details.length})</e>`,
    type: "application/xml",
  });
  const answer = await fail(new ConnectError("None.", Code.NotFound, undefined, [info]), errors);
  expect([answer.status, answer.headers.get("x-code")]).toEqual([405, "5"]);
  expect(answer.headers.get("content-type")).toMatch(/^application\/xml/);
  expect(answer.text).toBe("<e>BOOK_LENT: None. (1)</e>");
});

test("a function that throws costs its caller the form, not the answer", async () => {
  const answer = await fail(new ConnectError("None.", Code.NotFound), () => {
    throw new Error("secret");
  });
  expect(answer.status).toBe(404);
  expect(answer.record()).toEqual({ code: 5, message: "None.", details: [] });
});

test.each(["status", "problem"] as const)("the document tells of %j", async (errors) => {
  server = await serve(service, {}, { errors, openApi: { title: "Library" } });
  const document = (await server.call("/openapi.json")).record() as {
    components: Record<string, Record<string, object>>;
  };
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
  const { schemas, responses, examples } = document.components;
  expect(Object.keys(schemas ?? {}).slice(-2)).toEqual(
    errors === "status" ? ["Status", "Problem"] : [expect.any(String), "Problem"],
  );
  const types = errors === "status" ? ["application/json", "application/problem+json"] : ["application/problem+json"];
  for (const response of Object.values(responses ?? {}))
    expect(Object.keys((response as { content: object }).content)).toEqual(types);
  expect(examples?.INVALID_ID).toMatchObject({ value: { code: 3, details: [own("INVALID_ID")] } });
});
