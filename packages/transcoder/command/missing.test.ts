import { expect, test } from "vitest";
import { explained } from "./missing.ts";

const CODE = "ERR_MODULE_NOT_FOUND";

test("who asks for traces is told what to install", () => {
  const missing = Object.assign(new Error("Cannot find package '@opentelemetry/core' imported from /a/sdk.js"), {
    code: CODE,
  });
  expect(explained(missing)).toMatch(
    /^OTEL_EXPORTER_OTLP_ENDPOINT asks for traces.*: npm install "@opentelemetry\/api@\^\d.*"@opentelemetry\/sdk-trace@\^[\d.]+"$/,
  );
});

test("other errors are what they are", () => {
  expect(explained(new Error("'@opentelemetry/core' is away"))).toBe("'@opentelemetry/core' is away");
  expect(explained(Object.assign(new Error("Cannot find package 'zod'"), { code: CODE }))).toBe(
    "Cannot find package 'zod'",
  );
});
