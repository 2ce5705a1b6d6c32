/** The document of the petstore: its services, its limits, its words. */
import { docs } from "#proto/docs.ts";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { API_VERSION } from "../app.ts";
import type { GatewayConfig } from "../config.ts";
import { publicServices } from "../services.ts";
import { operationsOf } from "../transcoder/operations.ts";
import { openApiDocument } from "./document.ts";
import { examples, patchExamples } from "./examples.ts";
import type { JsonObject } from "./json.ts";
import { filesBelow } from "./rules.ts";

export const TITLE = "Petstore";

/** @throws Error when the configured sunset is before the deprecation. */
export function petstoreDocument({
  basePath,
  limits,
  deprecation,
}: Pick<GatewayConfig, "basePath" | "limits" | "deprecation">): JsonObject {
  const services = publicServices.map(({ desc }) => desc);
  return openApiDocument(
    {
      operations: services.flatMap(operationsOf),
      reasons: ErrorReasonSchema,
      docs,
      files: filesBelow(services.map(({ file }) => file)),
      examples,
      patchExamples,
      retirement: deprecation,
    },
    { title: TITLE, version: API_VERSION, description: describe(limits), basePath, requestMs: limits.requestMs },
  );
}

const describe = (
  limits: GatewayConfig["limits"],
): string => `Pets, the categories they belong to, orders for them and their stock.

The same services can be called by gRPC, gRPC-Web and Connect; this document is about HTTP with JSON.

- **Integers** are JSON integers with all their digits, up to 64 bits. Identifiers are below 2^53.
- **Errors** are \`{code, message, status}\`. After 503 or 504 the outcome of a write is unknown; after any other error it
  had no effect. With an \`Idempotency-Key\` it is safe to ask again.
- **Methods**: every GET also answers HEAD. OPTIONS answers 204 with \`Allow\`; a method that a path does not have is 405
  METHOD_NOT_ALLOWED with \`Allow\`, a path that does not exist is 404 ROUTE_NOT_FOUND.
- **Members and parameters that an operation does not know** are ignored, unless \`Prefer: handling=strict\` is sent.
- **Concurrency**: every answer with one record carries its \`ETag\`; with \`If-Match\` a write happens only if the record
  has not changed since.

| Limit | Value |
|---|---|
| Body | ${limits.bodyBytes} bytes |
| Nesting of JSON | ${limits.jsonDepth} |
| Request target | ${limits.urlBytes} bytes |
| Header fields together | ${limits.headerBytes} bytes |
| Time for a request | ${limits.requestMs / 1000} s |
| Message of gRPC-Web or Connect | ${limits.rpcBytes} bytes |
`;
