import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { filesBelow, jsonText, openApiDocument, operationsOf } from "connect-transcoder";
import { describe, expect, test } from "vitest";
import { docs } from "#proto/docs.ts";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { compileLibrary, serviceOf } from "../packages/transcoder/fixtures/compile.ts";
import { testLimits } from "./fixtures/gateway.ts";
import { petstoreDocument } from "./openapi.ts";

const config = {
  basePath: "",
  limits: { ...testLimits, rpcBytes: 1024 * 1024 },
  deprecation: {},
  rate: undefined,
  auth: undefined,
};
const text = jsonText(petstoreDocument(config));
const document = JSON.parse(text);
const at = (path: string, verb: string) => document.paths[path][verb];
/** What a reference leads to. */
const resolved = (one: typeof document): typeof document =>
  one.$ref
    ? one.$ref
        .split("/")
        .slice(1)
        .reduce((part: typeof document, name: string) => part[name], document)
    : one;
const parametersOf = (path: string, verb: string) => at(path, verb).parameters.map(resolved);
const codes = (path: string, verb: string, status: number): string[] =>
  resolved(at(path, verb).responses[status]).content["application/json"].schema.properties.code.enum;

test("it is valid OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(text));
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

test("it can be printed, and read as YAML", () => {
  expect(text).toMatch(/^[ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*$/);
  expect(text).not.toMatch(/\\u00/); // control characters, which a pattern can spell otherwise
});

test("every reference leads somewhere, and every component is referred to", () => {
  const references = new Set(
    [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)].map(([, kind, name]) => `${kind}/${name}`),
  );
  const components = Object.entries<object>(document.components).flatMap(([kind, named]) =>
    Object.keys(named).map((name) => `${kind}/${name}`),
  );
  expect([...references].sort()).toEqual(components.sort());
});

test("it lists the operations of the interface and no others", () => {
  const operations = Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((verb) => `${verb} ${path}`),
  );
  expect(operations).toEqual([
    "get /pets",
    "post /pets",
    "get /pets/{petId}",
    "put /pets/{petId}",
    "patch /pets/{petId}",
    "delete /pets/{petId}",
    "get /categories",
    "post /categories",
    "get /categories/{categoryId}",
    "put /categories/{categoryId}",
    "patch /categories/{categoryId}",
    "delete /categories/{categoryId}",
    "get /store/orders",
    "post /store/orders",
    "get /store/orders/{orderId}",
    "put /store/orders/{orderId}",
    "patch /store/orders/{orderId}",
    "delete /store/orders/{orderId}",
    "get /store/inventory",
    "get /store/inventory/{petId}",
    "put /store/inventory/{petId}",
    "patch /store/inventory/{petId}",
    "get /events",
  ]);
  expect(document.tags.map(({ name }: { name: string }) => name)).toEqual(["Pets", "Store", "Events"]);
  expect(at("/categories", "get").tags).toEqual(["Pets"]);
});

test("records have the names and required members of the specification", () => {
  const { schemas } = document.components;
  const required = (name: string) => schemas[name].required?.toSorted();
  expect(required("NewPet")).toEqual(["categoryId", "name"]);
  expect(required("Pet")).toEqual(["categoryId", "id", "name"]);
  expect(required("NewCategory")).toEqual(["name"]);
  expect(required("Category")).toEqual(["id", "name"]);
  expect(required("Order")).toBeUndefined();
  expect(required("InventoryItem")).toEqual(["petId", "quantity", "status"]);
  expect(required("InventoryUpdate")).toEqual(["quantity"]);
  expect(required("Error")).toEqual(["code", "message", "status"]);
  expect(schemas.PetStatus).toMatchObject({ type: "string", enum: ["available", "pending", "sold"] });
  expect(schemas.Pets).toEqual({ type: "array", items: { $ref: "#/components/schemas/Pet" } });
  expect(Object.keys(schemas.Order.properties)).toEqual(["id", "petId", "quantity", "shipDate", "complete"]);
});

test("integers have bounds that JavaScript holds exactly; those of 64 bits are told by their format", () => {
  const numbers = [...text.matchAll(/"(?:exclusive)?(?:min|max)imum":(-?\d+)/gi)].map(([, number]) => Number(number));
  expect(numbers.length).toBeGreaterThan(10);
  expect(numbers.filter((number) => !Number.isSafeInteger(number))).toEqual([]);
  const { NewPet, Pet } = document.components.schemas;
  expect(Pet.properties.id).toMatchObject({ type: "integer", format: "int64" });
  expect(NewPet.properties.categoryId).toMatchObject({ type: "integer", format: "int64", minimum: 1 });
  expect(document.components.schemas.Order.properties.quantity).toMatchObject({ minimum: 1, maximum: 2147483647 });
  expect(document.components.schemas.InventoryUpdate.properties.quantity).toMatchObject({
    minimum: 0,
    maximum: 2147483647,
  });
});

test("strings have their limits", () => {
  const { name, description } = document.components.schemas.NewCategory.properties;
  expect([name.minLength, name.maxLength]).toEqual([1, 200]);
  expect([description.minLength, description.maxLength]).toEqual([undefined, 2000]);
  expect(document.components.schemas.NewPet.properties.name).toMatchObject({ minLength: 1, maxLength: 200 });
  const pattern = new RegExp(name.pattern, "u");
  expect([" a ", "\u00a0"].map((value) => pattern.test(value))).toEqual([true, false]);
});

test("a patch requires nothing, and takes null where a value can be removed", () => {
  const { OrderPatch, NewCategoryPatch } = document.components.schemas;
  expect(OrderPatch.required).toBeUndefined();
  expect(OrderPatch.properties.shipDate.type).toEqual(["string", "null"]);
  expect(OrderPatch.properties.quantity.type).toBe("integer");
  expect(NewCategoryPatch.properties.description.type).toEqual(["string", "null"]);
  expect(Object.keys(at("/pets/{petId}", "patch").requestBody.content)).toEqual([
    "application/merge-patch+json",
    "application/json",
  ]);
});

test("conditions are parameters where one record is read or written", () => {
  const conditions = (path: string, verb: string): string[] =>
    parametersOf(path, verb)
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => name.startsWith("If"));
  for (const verb of ["get", "put", "patch", "delete"])
    expect(conditions("/pets/{petId}", verb)).toEqual(["If-Match", "If-None-Match"]);
  for (const verb of ["get", "post"]) expect(conditions("/categories", verb)).toEqual([]);
  expect(conditions("/pets", "get")).toEqual(["If-Match", "If-None-Match"]);
});

test("what is a header is called as the header is", () => {
  const described = parametersOf("/pets/{petId}", "put").find(({ name }: { name: string }) => name === "If-None-Match");
  expect(described.description).toContain("Judged after If-Match");
});

test("events are told of in both media types, with what they are made of and how they are gone on with", () => {
  const { parameters, responses, description } = at("/events", "get");
  const names = parameters.map(({ name }: { name?: string }) => name).filter(Boolean);
  expect(names).toEqual(["types", "petId", "snapshot", "lastEventId", "Last-Event-ID"]);
  const kinds = ["Pet", "Category", "Order", "Inventory", "Synced"].map((kind) => `${kind}CloudEvent`);
  const value = { anyOf: [...kinds, "Error"].map((name) => ({ $ref: `#/components/schemas/${name}` })) };
  const dataOf = (type: string) => responses[200].content[type]["x-itemSchema"].properties.data;
  expect(dataOf("application/x-ndjson")).toEqual(value);
  expect(dataOf("text/event-stream")).toEqual({
    type: "string",
    contentMediaType: "application/json",
    contentSchema: value,
  });
  const [inQuery, inHeader] = parameters.slice(-5);
  expect(inQuery).toMatchObject({ name: "lastEventId", schema: { type: "string", maxLength: 6000 } });
  expect(inHeader).toMatchObject({ name: "Last-Event-ID", schema: { type: "string", maxLength: 6000 } });
  for (const { schema } of [inQuery, inHeader]) expect(schema).not.toHaveProperty("minLength");
  expect(document.components.schemas.PetCloudEvent.properties.data.$ref).toBe("#/components/schemas/Pet");
  expect(Object.keys(responses)).toEqual(expect.arrayContaining(["400", "406", "410", "429", "503"]));
  expect(description).toContain("pets:read, categories:read, orders:read, inventory:read");
  expect(document.components.parameters.ServerTimeout.description).toContain("a stream until its answer begins");
});

test("a limit beyond the largest is not forbidden, for it is read as the largest", () => {
  const [limit] = at("/pets", "get").parameters;
  expect([limit.name, limit.schema]).toEqual(["limit", { type: "integer", minimum: 1 }]);
});

test("refusals that a key is bound to say when they are sent again", () => {
  const headers = (path: string, verb: string, status: number): string[] =>
    Object.keys(resolved(at(path, verb).responses[status]).headers);
  for (const answer of [headers("/store/orders", "post", 409), headers("/pets", "post", 404)])
    expect(answer).toContain("Idempotent-Replayed");
  for (const answer of [headers("/pets", "post", 422), headers("/pets/{petId}", "get", 404)])
    expect(answer).not.toContain("Idempotent-Replayed");
});

test("errors of an operation are its own and those that follow from what it takes", () => {
  expect(codes("/pets", "get", 400)).toEqual([
    "INVALID_QUERY",
    "INVALID_PAGE_TOKEN",
    "INVALID_HEADER",
    "UNKNOWN_FIELD",
  ]);
  expect(codes("/store/orders", "post", 400)).toEqual([
    "MALFORMED_JSON",
    "VALIDATION_FAILED",
    "INVALID_QUERY",
    "INVALID_HEADER",
    "UNKNOWN_FIELD",
  ]);
  expect(codes("/store/orders", "post", 409)).toEqual([
    "PET_NOT_AVAILABLE",
    "INSUFFICIENT_STOCK",
    "TOO_MANY_OPEN_ORDERS",
  ]);
  expect(codes("/store/orders", "post", 422)).toEqual(["IDEMPOTENCY_KEY_REUSED"]);
  expect(codes("/pets/{petId}", "put", 404)).toEqual(["PET_NOT_FOUND", "CATEGORY_NOT_FOUND"]);
  expect(codes("/pets/{petId}", "delete", 412)).toEqual(["ETAG_MISMATCH"]);
  expect(codes("/pets/{petId}", "get", 412)).toEqual(["ETAG_MISMATCH"]);
  expect(codes("/pets", "get", 412)).toEqual(["ETAG_MISMATCH"]);
  expect(at("/categories", "get").responses[412]).toBeUndefined();
  expect(at("/pets", "post").responses[412]).toBeUndefined();
  expect(at("/pets", "get").responses[404]).toBeUndefined();
});

test("a list that answers for one record says so: its ETag, and conditions", () => {
  const { responses } = at("/pets", "get");
  expect(responses[200].headers.ETag.description).toMatch(/^With one `id` and no other filter: Revision/);
  expect(responses[200].headers.ETag.required).toBeUndefined();
  expect(responses[304].headers.ETag).toBeDefined();
  expect(at("/categories", "get").responses[200].headers.ETag).toBeUndefined();
});

describe("the deprecated operation", () => {
  const operation = (deprecation: Parameters<typeof petstoreDocument>[0]["deprecation"]) =>
    JSON.parse(jsonText(petstoreDocument({ ...config, deprecation }))).paths["/pets/{petId}"].get;

  test("says so, with its sunset and its successor", () => {
    expect(operation({})).toMatchObject({ deprecated: true });
    expect(operation({}).description).toContain("2027-12-31T23:59:59Z");
    expect(operation({}).description).toContain("/pets?id={petId}");
    expect(Object.keys(operation({}).responses[200].headers)).toEqual(
      expect.arrayContaining(["Deprecation", "Sunset", "Link"]),
    );
    expect(at("/categories/{categoryId}", "get").deprecated).toBeUndefined();
  });
  test("answers 410 only where that is configured, and has the dates that hold", () => {
    expect(operation({}).responses[410]).toBeUndefined();
    const gone = operation({ goneAfterSunset: true, sunsetAt: Date.parse("2030-01-01T00:00:00Z") });
    expect(gone.responses[410]).toBeDefined();
    expect(gone.description).toContain("2030-01-01T00:00:00Z");
  });
});

test("what a key binds says whether it is a replay: what was created, and what was refused for what is stored", () => {
  const replayable = (path: string, verb: string) =>
    Object.entries<{ $ref?: string; headers?: object }>(at(path, verb).responses).flatMap(
      ([status, { $ref, ...own }]) => {
        const { headers = {} } = $ref ? document.components.responses[$ref.split("/").at(-1) ?? ""] : own;
        return "Idempotent-Replayed" in headers ? [status] : [];
      },
    );
  expect(replayable("/pets", "post")).toEqual(["201", "404", "409"]);
  expect(replayable("/categories", "post")).toEqual(["201"]);
  expect(replayable("/store/orders", "post")).toEqual(["201", "404", "409"]);
  expect(replayable("/pets/{petId}", "put")).toEqual([]);
});

test("a created record leads to every operation that takes its identifier", () => {
  expect(Object.keys(at("/pets", "post").responses[201].links).sort()).toEqual([
    "deletePet",
    "getInventory",
    "getPet",
    "replaceInventory",
    "replacePet",
    "updateInventory",
    "updatePet",
  ]);
  expect(at("/categories", "post").responses[201].links.getCategory).toEqual({
    operationId: "getCategory",
    parameters: { categoryId: "$response.body#/id" },
  });
});

test("examples keep to their schemas", () => {
  const ajv = new Ajv2020({ strict: false, validateSchema: false });
  addFormats.default(ajv);
  ajv.addSchema({ ...document, $id: ROOT });
  const examples = [...examplesBelow(document, `${ROOT}#`)];
  const wrong = examples.filter(({ pointer, example }) => !ajv.validate({ $ref: pointer }, example));
  expect(wrong).toEqual([]);
  const places = examples.map(({ pointer }) => pointer.slice(ROOT.length));
  for (const place of ["NewPet", "NewPetPatch", "Order", "OrderPatch", "Problem"])
    expect(places).toContain(`#/components/schemas/${place}`);
  for (const place of ["IfMatch", "IfNoneMatch", "ServerTimeout"])
    expect(places).toContain(`#/components/parameters/${place}/schema`);
  expect(places).toContain("#/paths/~1pets/post/requestBody/content/application~1json/schema");
  expect(places).toContain("#/components/responses/PetNotFound/content/application~1json/schema");
});

const ROOT = "https://document.invalid/";

/** Examples in schemas, and those beside the schema of a media type. */
function* examplesBelow(node: unknown, pointer: string): Iterable<{ pointer: string; example: unknown }> {
  if (typeof node !== "object" || node === null || pointer === `${ROOT}#/components/examples`) return;
  for (const [name, member] of Object.entries(node)) {
    if (name === "example") yield { pointer: `${pointer}/schema`, example: member };
    else if (name !== "examples" || pointer === `${ROOT}#/components`)
      yield* examplesBelow(member, `${pointer}/${encodeURI(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`);
    else if (Array.isArray(member)) for (const example of member) yield { pointer, example };
    else for (const one of Object.values(member)) yield { pointer: `${pointer}/schema`, example: resolved(one).value };
  }
}

test("the example of an error is what the gateway would send", () => {
  const { content } = resolved(at("/pets", "post").responses[404]);
  expect(resolved(content["application/json"].examples.CATEGORY_NOT_FOUND).value).toEqual({
    code: "CATEGORY_NOT_FOUND",
    message: docs["petstore.common.v1.ErrorReason.ERROR_REASON_CATEGORY_NOT_FOUND"],
    status: 404,
  });
  const { examples } = resolved(content["application/problem+json"].schema);
  expect(examples).toEqual([
    expect.objectContaining({ type: "about:blank", title: "Bad Request", status: 400, code: "MALFORMED_JSON" }),
  ]);
});

test("it says whose it is, and under which license it may be used", () => {
  const { license, contact } = document.info;
  expect(license).toEqual({ name: "MIT", identifier: "MIT" });
  expect(readFileSync(join(import.meta.dirname, "../LICENSE"), "utf8")).toMatch(/^MIT License/);
  expect(contact.name).toBeTruthy();
});

test("paths stand behind the server's address", () => {
  expect(document.servers).toEqual([{ url: "/" }]);
  expect(petstoreDocument({ ...config, basePath: "/api" }).servers).toEqual([{ url: "/api" }]);
  const publicUrl = "https://shop.example";
  expect(petstoreDocument({ ...config, publicUrl }).servers).toEqual([{ url: publicUrl }]);
  expect(petstoreDocument({ ...config, publicUrl, basePath: "/api" }).servers).toEqual([{ url: `${publicUrl}/api` }]);
});

test("what operations have in common stands once", () => {
  const operations = Object.values<object>(document.paths).flatMap((item) => Object.values(item));
  const failures = operations.flatMap(({ responses }) =>
    Object.entries<object>(responses).flatMap(([status, response]) => (Number(status) < 400 ? [] : [response])),
  );
  expect(failures.length).toBeGreaterThan(200);
  expect(failures.filter((failure) => !("$ref" in failure))).toEqual([]);
  const inline = operations.flatMap(({ parameters }) => parameters.map(({ name }: { name?: string }) => name));
  for (const common of ["Prefer", "X-Server-Timeout", "X-Request-Id"]) expect(inline).not.toContain(common);
  // 273 kB when each of them had all that it can answer.
  expect(Buffer.byteLength(text)).toBeLessThan(160_000);
});

test("an operation is called as a person would call it", () => {
  const ids = Object.values<object>(document.paths).flatMap((item) =>
    Object.values(item).map(({ operationId }) => operationId),
  );
  const ofRecord = (one: string, all: string) => [
    ...[`list${all}`, `create${one}`, `get${one}`, `replace${one}`, `update${one}`, `delete${one}`],
  ];
  expect(ids).toEqual([
    ...[...ofRecord("Pet", "Pets"), ...ofRecord("Category", "Categories"), ...ofRecord("Order", "Orders")],
    ...["listInventory", "getInventory", "replaceInventory", "updateInventory", "watchEvents"],
  ]);
});

test("every body has an example", () => {
  const bodies = Object.values<object>(document.paths)
    .flatMap((item) => Object.values(item))
    .flatMap(({ requestBody }) => Object.values<{ example: unknown }>(requestBody?.content ?? {}));
  expect(bodies).toHaveLength(15);
  for (const { example } of bodies) expect(example).toBeTypeOf("object");
  expect(at("/pets", "post").requestBody.content["application/json"].example).toMatchObject({ name: "Rex" });
});

test("a request has a second at least, so that one that tools make up has an answer", () => {
  const pattern = new RegExp(document.components.parameters.ServerTimeout.schema.pattern, "u");
  const taken = ["1", "1.0", "2.5", "007.5", "10", "86400"];
  const others = ["0", "0.0", "0.999", "00.000000000010", "1e3", "-1", "1.", ".5", "", " 1"];
  expect([...taken, ...others].filter((text) => pattern.test(text))).toEqual(taken);
});

test("every operation, parameter and member is explained", () => {
  const mute = Object.entries<
    Record<string, { summary: string; description?: string; parameters: { name?: string; description?: string }[] }>
  >(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, { summary, description, parameters }]) => [
      ...(summary && description ? [] : [`${verb} ${path}`]),
      ...parameters
        .filter(({ name, description }) => name && !description)
        .map(({ name }) => `${verb} ${path} ${name}`),
    ]),
  );
  expect(mute).toEqual([]);
  expect(Object.values(docs).filter((comment) => /[ \t]+(\n|$)/.test(comment))).toEqual([]);
});

test("a service that the gateway has never heard of is described as well", async () => {
  const service = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
  const sources = {
    operations: operationsOf(service),
    reasons: ErrorReasonSchema,
    docs: {},
    files: filesBelow([service.file]),
    examples: {},
    patchExamples: {},
    deprecation: {},
  };
  const about = {
    title: "Library",
    version: "1.0.0",
    description: "Books",
    license: "Apache-2.0",
    contact: "The librarians",
    basePath: "",
    requestMs: 10_000,
  };
  const foreign = JSON.parse(jsonText(openApiDocument(sources, about)));
  expect((await new Validator().validate(structuredClone(foreign))).errors).toBeUndefined();
  expect(Object.keys(foreign.paths).length).toBeGreaterThan(3);
});

describe("with a rate", () => {
  const rate = { requests: 600, windowMs: 60_000, burst: 100 };
  const limited = JSON.parse(jsonText(petstoreDocument({ ...config, rate })));
  const operations = Object.values<object>(limited.paths).flatMap((item) => Object.values(item));

  test("it is valid, and every operation may be refused for it", async () => {
    expect((await new Validator().validate(structuredClone(limited))).errors).toBeUndefined();
    const names = operations.map(({ responses }) => responses[429].$ref.split("/").at(-1));
    expect(new Set(names)).toEqual(
      new Set(["RateLimited", "RateLimitedWhenDeprecated", "SlowConsumerOrTooManyStreams"]),
    );
    expect(Object.keys(limited.components.responses.RateLimited.headers)).toContain("Retry-After");
  });

  test("every answer has its headers, and the numbers are told", () => {
    const answers = [
      ...operations.flatMap(({ responses }) => Object.values<{ headers?: object }>(responses)),
      ...Object.values<{ headers: object }>(limited.components.responses),
    ].flatMap(({ headers }) => (headers ? [Object.keys(headers)] : []));
    for (const names of answers) expect(names).toEqual(expect.arrayContaining(["RateLimit", "RateLimit-Policy"]));
    expect(limited.components.headers["RateLimit-Policy"].example).toBe('"default";q=600;w=60;burst=100');
    expect(limited.info.description).toContain("| Requests of one caller | 600 in 60 s, 100 at once |");
  });

  test("and without one, nothing of it", () => {
    const { headers, responses } = document.components;
    expect(Object.keys({ ...headers, ...responses }).filter((name) => name.startsWith("RateLimit"))).toEqual([]);
    expect(at("/pets", "get").responses[429]).toBeUndefined();
  });
});

describe("where callers are asked who they are", () => {
  const tokens = { issuer: "https://login.example", audience: "petstore", jwks: "jwks.json", algorithms: ["ES256"] };
  const asking = (auth: Parameters<typeof petstoreDocument>[0]["auth"]) =>
    JSON.parse(jsonText(petstoreDocument({ ...config, auth })));
  const operationsIn = (made: typeof document) =>
    Object.values<Record<string, typeof document>>(made.paths).flatMap((item) => Object.values(item));

  test("by default nobody is, and it says so", () => {
    expect(document.security).toEqual([]);
    expect(document.components.securitySchemes).toBeUndefined();
    expect(operationsIn(document).filter(({ security, responses }) => security || responses[401])).toEqual([]);
  });

  test.each([
    [{ apiKeysFile: "keys.json", tokens: undefined }, ["apiKey", "bearer"]],
    [{ apiKeysFile: undefined, tokens }, ["bearer"]],
    [{ apiKeysFile: "keys.json", tokens }, ["apiKey", "bearer"]],
  ])("by %j", async (auth, schemes) => {
    const made = asking(auth);
    expect((await new Validator().validate(JSON.parse(JSON.stringify(made)))).errors).toBeUndefined();
    expect(Object.keys(made.components.securitySchemes)).toEqual(schemes);
    expect(made.security).toBeUndefined();
    const needs = (scope: string) => schemes.map((name) => ({ [name]: [scope] }));
    expect(made.paths["/pets"].get.security).toEqual(needs("pets:read"));
    expect(made.paths["/store/orders/{orderId}"].patch.security).toEqual(needs("orders:write"));
    for (const { operationId, security, responses } of operationsIn(made)) {
      // Events need the scopes of the types that are asked for.
      expect(security[0][schemes[0] ?? ""]).toHaveLength(operationId === "watchEvents" ? 0 : 1);
      // Invalid credentials are limited, whatever rates there are.
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(["401", "403", "429"]));
    }
    // A key may have a rate of its own, of which its answers tell.
    const rates = auth.apiKeysFile === undefined ? undefined : expect.objectContaining({ required: false });
    expect(made.components.headers.RateLimit).toEqual(rates);
    expect(made.components.headers["RateLimit-Policy"]).toEqual(rates);
    const { headers } = made.components.responses.Unauthenticated;
    expect(headers["WWW-Authenticate"]).toEqual({ $ref: "#/components/headers/WWW-Authenticate" });
    expect(made.components.headers["WWW-Authenticate"]).toBeDefined();
  });
});
