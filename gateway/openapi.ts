/** The petstore's OpenAPI document: its services, limits and texts. */
import type { Rate } from "@petstore/runtime/rate";
import { filesBelow, type JsonObject, openApiDocument, operationsOf, type Sources } from "connect-transcoder";
import { docs } from "#proto/docs.ts";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { API_VERSION, TOLD_CHOICES } from "./app.ts";
import type { GatewayConfig } from "./config.ts";
import { ratePolicy } from "./limits.ts";
import { httpServices } from "./services.ts";

/** @throws Error when the configured sunset is before the deprecation. */
export function petstoreDocument({
  publicUrl,
  basePath,
  limits,
  deprecation,
  rate,
  auth,
}: Pick<GatewayConfig, "basePath" | "limits" | "deprecation" | "rate" | "auth"> &
  Partial<Pick<GatewayConfig, "publicUrl">>): JsonObject {
  const document = openApiDocument(
    {
      operations: httpServices.flatMap(operationsOf),
      reasons: ErrorReasonSchema,
      docs,
      files: filesBelow(httpServices.map(({ file }) => file)),
      examples,
      patchExamples,
      deprecation,
      security: auth && securitySchemesOf(auth),
    },
    {
      title: "Petstore",
      version: API_VERSION,
      description: describe(limits, rate),
      license: "MIT",
      contact: "The petstore authors",
      url: publicUrl,
      basePath,
      requestMs: limits.requestMs,
      ...TOLD_CHOICES,
      everywhere: (rate || auth) && { errors: ["RATE_LIMITED"], headers: rateHeaderObjects(rate, auth) },
    },
  );
  // That nobody has to show anything is said, not left open.
  return auth ? document : { ...document, security: [] };
}

/** Without a general rate the headers are optional: an API key may have a rate of its own. */
function rateHeaderObjects(rate: Rate | undefined, auth: GatewayConfig["auth"]): Record<string, JsonObject> {
  if (!rate && auth?.apiKeysFile === undefined) return {};
  const header = (description: string, example: (rate: Rate) => string, pattern?: string): JsonObject => ({
    description,
    required: rate !== undefined,
    schema: { type: "string", pattern },
    example: rate && example(rate),
  });
  return {
    "RateLimit-Policy": header(
      "How much a caller may send: `q` requests in each window of `w` seconds, all callers of an address together where " +
        "nobody is asked who calls. Not more than `burst` at once, where that is said " +
        "(draft-ietf-httpapi-ratelimit-headers-10).",
      ratePolicy,
    ),
    RateLimit: header(
      "What remains of it: `r` requests could be sent at once; after `t` seconds it is as if none had been sent.",
      ({ burst, windowMs, requests }) => `"default";r=${burst - 1};t=${Math.ceil(windowMs / requests / 1000)}`,
      '^"default";r=\\d+;t=\\d+$',
    ),
  };
}

const KEY = "An API key, such as psk_<id>_<secret>.";
const TOKEN = "An access token (RFC 9068).";

/** The kinds of credentials that callers can send. */
const securitySchemesOf = ({
  apiKeysFile,
  tokens,
}: NonNullable<GatewayConfig["auth"]>): Record<string, JsonObject> => ({
  ...(apiKeysFile !== undefined && {
    apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: KEY },
  }),
  bearer: {
    type: "http",
    scheme: "bearer",
    ...(tokens && { bearerFormat: "JWT" }),
    description: apiKeysFile === undefined ? TOKEN : tokens ? `${KEY} Or: ${TOKEN}` : KEY,
  },
});

const describe = (
  limits: GatewayConfig["limits"],
  rate: Rate | undefined,
): string => `Pets, the categories they belong to, orders for them and their stock.

The same services can be called by gRPC, gRPC-Web and Connect; this document is about HTTP with JSON.

- **Integers** are JSON integers with all their digits, up to 64 bits. Identifiers are below 2^53.
- **Errors** are \`{code, message, status}\`. After 503 or 504 the outcome of a write is unknown; after any other error it
  had no effect.
- **Idempotency keys**: until its outcome is known, a create is safe to send again with the same \`Idempotency-Key\` and
  body. A key answers once: the first 201, 404 or 409 is its answer for at least 24 hours, sent again with
  \`Idempotent-Replayed\`, so take a new key after it. 409 CONCURRENT_UPDATE and all other errors are no key's answer. Another
  body under the same key is 422 IDEMPOTENCY_KEY_REUSED.
- **Methods**: every GET also answers HEAD. OPTIONS answers 204 with \`Allow\`; a method that a path does not have is 405
  METHOD_NOT_ALLOWED with \`Allow\`, a path that does not exist is 404 ROUTE_NOT_FOUND. Over HTTP/1.1 a method that is not
  registered anywhere is 400 INVALID_HEADER.
- **Hosts**: a \`Host\` that this petstore does not answer to is 421 MISDIRECTED_REQUEST, whatever is asked for.
- **Members and parameters that an operation does not know** are ignored, unless \`Prefer: handling=strict\` is sent.
  A record can be sent back as it came: members that only answers have, such as \`id\`, are known, and not looked at.
- **Conditions** (RFC 9110, 13): every answer with one record carries its \`ETag\`. With \`If-Match\` a read or a write of
  one record happens only if the record has not changed since; with \`If-None-Match\` a read of what the caller holds is
  304, and a write only happens if the record is at none of the revisions named, with \`*\` never. Else the answer is 412.
  \`If-Match\` compares strongly and goes first, \`If-None-Match\` weakly; a record that does not exist is 404 before. Lists
  and creates are about no record that could be compared: conditions don't count there.
- **Media types**: successes are \`application/json\`, but for events, which are a stream. Errors are \`application/problem+json\` (RFC 9457) when the header
  \`Accept\` gives it a higher weight than JSON, or names it with the same; else JSON (RFC 9110, 12.5.1).
- **Caches**: what is read may be kept and asked for again (\`no-cache\`). Errors and answers to writes may not be kept
  (\`no-store\`): they say what became of one request.

| Limit | Value |
|---|---|
| Body | ${limits.bodyBytes} bytes |
| Nesting of JSON | ${limits.jsonDepth} |
| Request target | ${limits.urlBytes} bytes |
| Header fields together | ${limits.headerBytes} bytes |
| Time for a request | ${limits.requestMs / 1000} s |
| Message of gRPC-Web or Connect | ${limits.rpcBytes} bytes |
${rate ? `| Requests of one caller | ${rate.requests} in ${rate.windowMs / 1000} s, ${rate.burst} at once |\n` : ""}`;

/** The examples of the OpenAPI document. They work in this order on an empty petstore: identifiers start at 1. */
export const examples: Sources["examples"] = {
  "petstore.category.v1.NewCategory": [{ name: "Dogs", description: "Loyal, loud and hungry" }],
  "petstore.category.v1.Category": [{ id: 1, name: "Dogs", description: "Loyal, loud and hungry" }],
  "petstore.pet.v1.NewPet": [{ name: "Rex", categoryId: 1, status: "available" }],
  "petstore.pet.v1.Pet": [{ id: 1, name: "Rex", categoryId: 1, status: "available" }],
  "petstore.inventory.v1.InventoryUpdate": [{ quantity: 10 }],
  "petstore.inventory.v1.InventoryItem": [{ petId: 1, quantity: 10, status: "available" }],
  "petstore.order.v1.Order": [
    { petId: 1, quantity: 1, shipDate: "2030-06-01T12:00:00Z", complete: false },
    { shipDate: "2030-06-01T12:00:00Z" },
  ],
  // What an order is for does not change.
  "petstore.order.v1.UpdateOrderRequest": [{ order: { shipDate: "2030-07-01T12:00:00Z" } }],
};

export const patchExamples: Sources["patchExamples"] = {
  "petstore.category.v1.NewCategory": [{ description: null }],
  "petstore.pet.v1.NewPet": [{ name: "Rex the Second" }],
  "petstore.inventory.v1.InventoryUpdate": [{ quantity: 10 }],
  "petstore.order.v1.Order": [{ shipDate: "2030-07-01T12:00:00Z" }, { complete: true }],
};
