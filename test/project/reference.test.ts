/** docs/reference.md is what the contract says: this makes it of the descriptors and of the OpenAPI document. */
import { getOption } from "@bufbuild/protobuf";
import { jsonText, operationsOf } from "connect-transcoder";
import { error, scope } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { expect, test } from "vitest";
import { docs } from "#proto/docs.ts";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { gatewayConfig } from "../../gateway/config.ts";
import { petstoreDocument } from "../../gateway/openapi.ts";
import { publicServices } from "../../gateway/services.ts";

const PAGE = "docs/reference.md";

interface Described {
  readonly description?: string;
}
interface Schema extends Described {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}
interface Parameter extends Described {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}
interface Documented {
  readonly operationId: string;
  readonly summary: string;
  readonly deprecated?: boolean;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly responses: Readonly<Record<string, Response>>;
}
type Response = Described & { readonly $ref?: string };

const config = gatewayConfig({ INTERNAL_SECRET: "x".repeat(32), AUTH_MODE: "keys", API_KEYS_FILE: "keys.json" });
const document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Described>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
} = JSON.parse(jsonText(petstoreDocument(config)));

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), ...operation })),
);
const nameIn = (ref: string) => ref.split("/").at(-1) ?? "";
const textOf = ({ $ref, description }: Response) =>
  ($ref ? document.components.responses[nameIn($ref)]?.description : description) ?? "";
const codesOf = ({ responses }: Documented) =>
  Object.values(responses).flatMap((response) =>
    [...textOf(response).matchAll(/^- `([A-Z_]+)`/gm)].map(([, code]) => code ?? ""),
  );
const [first, ...others] = operations.map(codesOf);
const everywhere = new Set(first?.filter((code) => others.every((codes) => codes.includes(code))));

const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ")).join(" | ")} |`)
    .join("\n");
const code = (text: string) => `\`${text}\``;
const toCode = (reason: string) => `[${code(reason)}](#${reason})`;
const anchored = (reason: string) => `<a id="${reason}"></a>${code(reason)}`;

function typeOf({ $ref, type = "", format, enum: values, items }: Schema): string {
  if ($ref) return $ref.includes("schemas") ? `[${nameIn($ref)}](#${nameIn($ref).toLowerCase()})` : "";
  if (items) return `several of ${typeOf(items)}`;
  if (values) return values.map((value) => code(value)).join(", ");
  return format ? `${type} (${format})` : type;
}

/** Events ask for the scopes of the types that are asked for. */
function scopeOf([first = {}]: readonly Record<string, readonly string[]>[] = []): string {
  const [scope] = Object.values(first).flat();
  return scope === undefined ? "of each type" : code(scope);
}

function operationsTable(): string {
  const rows = operations.map((operation) => {
    const { path, verb, operationId, summary, deprecated, security, responses } = operation;
    const own = codesOf(operation).filter((reason) => !everywhere.has(reason));
    const success = Object.keys(responses).filter((status) => status.startsWith("2"));
    return [
      code(`${verb} ${path}`),
      `${summary}${deprecated ? " (deprecated)" : ""}`,
      code(operationId),
      scopeOf(security),
      success.join(", "),
      own.map(toCode).join(", "),
    ];
  });
  return table(["operation", "what it does", "name", "scope", "success", "errors beside those of all"], rows);
}

/** A parameter that means the same everywhere is told once. */
function parametersTable(): string {
  const used = new Map<string, { parameter: Parameter; by: string[] }>();
  for (const { path, verb, parameters = [] } of operations)
    for (const one of parameters) {
      const parameter = "$ref" in one ? document.components.parameters[nameIn(one.$ref)] : one;
      if (parameter?.in !== "query") continue;
      const key = `${parameter.name} ${parameter.description}`;
      const { by } = used.get(key) ?? { by: [] };
      used.set(key, { parameter, by: [...by, code(`${verb} ${path}`)] });
    }
  const rows = [...used.values()].map(({ parameter: { name, schema, description = "" }, by }) => [
    code(name),
    typeOf(schema),
    description,
    by.join(", "),
  ]);
  return table(["parameter", "type", "meaning", "of"], rows);
}

const records = () =>
  Object.entries(document.components.schemas)
    .filter(([name, schema]) => (schema.properties || schema.enum) && !name.endsWith("Patch"))
    .map(([name, schema]) => {
      const { description = "", properties = {}, required = [] } = schema;
      if (schema.enum) return `### ${name}\n\n${description}\n\nOne of ${typeOf(schema)}.`;
      const rows = Object.entries(properties).map(([member, schema]) => [
        code(member),
        typeOf(schema),
        required.includes(member) ? "always" : "",
        schema.description ?? "",
      ]);
      return `### ${name}\n\n${description}\n\n${table(["member", "type", "there", "meaning"], rows)}`;
    });

function rpcsTable(): string {
  const rows = publicServices.flatMap(({ desc }) => {
    const overHttp = new Set(operationsOf(desc).map(({ method }) => method.name));
    const without = desc.methods.filter(({ name }) => !overHttp.has(name));
    return without.map((method) => [
      code(`${desc.typeName}/${method.name}`),
      (docs[`${desc.typeName}.${method.name}`] ?? "").split("\n\n")[0] ?? "",
      code(getOption(method, scope)),
    ]);
  });
  return table(["RPC", "what it does", "scope"], rows);
}

function errorsTable(): string {
  const rows = ErrorReasonSchema.values.flatMap((value) => {
    const { httpStatus, grpcCode } = getOption(value, error);
    if (httpStatus === 0) return [];
    const reason = value.localName;
    return [
      [
        anchored(reason) + (everywhere.has(reason) ? " *" : ""),
        `${httpStatus}`,
        grpcCode,
        docs[`${ErrorReasonSchema.typeName}.${value.name}`] ?? "",
      ],
    ];
  });
  return table(["code", "HTTP", "gRPC", "when"], rows);
}

const made = `# Reference

Made of the contract by \`test/project/reference.test.ts\`, which keeps it true: change the [\`.proto\` files](../proto/petstore). A petstore that runs tells the same, with headers and examples, at <http://127.0.0.1:8080/docs>. Variables are on a [page of their own](configuration.md).

## Operations

Every GET also answers HEAD. The scope is asked for where [callers are asked who they are](authentication.md).

${operationsTable()}

## Parameters of queries

${parametersTable()}

## Records

${records().join("\n\n")}

## RPCs without a path

Beside these, every operation is an RPC as well.

${rpcsTable()}

## Errors

The same code is the \`reason\` of the ErrorInfo on RPCs. Any operation may answer with those that have a star.

${errorsTable()}
`;

test("the page is what the contract says (`npx vitest run test/project/reference.test.ts -u` writes it)", async () => {
  await expect(made).toMatchFileSnapshot(`../../${PAGE}`);
});

test("it has every operation, every RPC and every error", () => {
  expect(operations.length).toBeGreaterThan(20);
  for (const { desc } of publicServices)
    for (const { name } of desc.methods) expect(made, name).toMatch(new RegExp(`\\b${name}\\b`, "i"));
  expect([...everywhere]).toEqual(expect.arrayContaining(["UNAUTHENTICATED", "INTERNAL", "UNAVAILABLE"]));
  expect(operations.flatMap(codesOf)).toContain("ETAG_MISMATCH");
  for (const { localName, number } of ErrorReasonSchema.values)
    if (number > 0) expect(made).toContain(`<a id="${localName}"></a>`);
});
