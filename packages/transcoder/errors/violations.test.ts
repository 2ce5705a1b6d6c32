/** Where a caller is told to look for what breaks a rule that is about more than one field. */
import { expect, test } from "vitest";
import { EXACT } from "../contract/codec.ts";
import { operationsOf } from "../contract/operations.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { inputReader } from "../request/input.ts";
import { prepareValidation } from "../validation/validate.ts";

const operations = operationsOf(
  serviceOf(
    compileProtos({
      "ask.proto": `syntax = "proto3";
        package ask.v1;
        import "buf/validate/validate.proto";
        import "google/api/annotations.proto";
        message Book {
          oneof binding { option (buf.validate.oneof).required = true; string cloth = 1; string paper = 2; }
        }
        message Ask {
          option (buf.validate.message).cel = {id: "one" message: "must not ask for all" expression: "this.title != 'all'"};
          string title = 1;
          oneof order { option (buf.validate.oneof).required = true; string up = 2; string down = 3; }
        }
        message Change {
          Book book = 1;
          oneof order { option (buf.validate.oneof).required = true; string up = 2; string down = 3; }
        }
        message Nothing {}
        service Asks {
          rpc Find(Ask) returns (Nothing) { option (google.api.http) = {get: "/find"}; }
          rpc Send(Ask) returns (Nothing) { option (google.api.http) = {post: "/send" body: "*"}; }
          rpc Put(Change) returns (Nothing) { option (google.api.http) = {put: "/put" body: "book"}; }
        }`,
    }),
    "ask.v1.Asks",
  ),
);
await prepareValidation(operations.map(({ method }) => method.input));

test.each([
  ["find", "/find?title=a", "", "INVALID_QUERY", "order: exactly one field is required in oneof"],
  ["find", "/find?title=all&up=a", "", "INVALID_QUERY", "must not ask for all"],
  ["send", "/send", '{"title":"a"}', "VALIDATION_FAILED", "order: exactly one field is required in oneof"],
  ["send", "/send", '{"title":"all","up":"a"}', "VALIDATION_FAILED", "must not ask for all"],
  ["put", "/put", '{"cloth":"a"}', "INVALID_QUERY", "order: exactly one field is required in oneof"],
  ["put", "/put?up=a", "{}", "VALIDATION_FAILED", "binding: exactly one field is required in oneof"],
])("%s %s %s: %s", (name, target, body, code, message) => {
  const operation = operations.find(({ id }) => id === name);
  if (!operation) throw new Error(name);
  const read = inputReader(operation, { basePath: "", maxDepth: 16, codec: EXACT });
  const incoming = { target, headers: {}, body: new TextEncoder().encode(body), strict: false };
  const [, field, description] = /^(\w+): (.*)$/.exec(message) ?? [];
  // A rule about the whole request has no field.
  const violations = field === undefined ? [] : [{ field, description }];
  expect(() => read(incoming)).toThrow(expect.objectContaining({ code, message, violations }));
});
