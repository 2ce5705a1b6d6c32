/**
 * Builds the console for browsers: `console/dist/index.html`, and in `assets` beside it the files that it loads. Each is
 * named by the hash of its content, and is also there compressed by gzip. Before that, `console/gen/http.ts` is made:
 * what the console needs to know of the HTTP API, from the contract.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { getOption } from "@bufbuild/protobuf";
import { rolldown } from "rolldown";
import { CategoryService } from "../proto/gen/petstore/category/v1/category_service_pb.ts";
import { ErrorReasonSchema } from "../proto/gen/petstore/common/v1/error_reason_pb.ts";
import { InventoryService } from "../proto/gen/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "../proto/gen/petstore/order/v1/order_service_pb.ts";
import { PetService } from "../proto/gen/petstore/pet/v1/pet_service_pb.ts";

const root = join(import.meta.dirname, "..");
const source = join(root, "console");
const assets = join(source, "dist/assets");

await writeHttp();
await build();

/** The HTTP operations of each RPC, and the status of each reason, as data. */
async function writeHttp(): Promise<void> {
  // Imported by path: the package would also load its Fastify part and the validation, which takes half a second.
  const { operationsOf } = await import("../packages/transcoder/contract/operations.ts");
  const annotations = await import("../packages/transcoder/gen/transcoder/v1/annotations_pb.ts");
  const operations = [PetService, CategoryService, OrderService, InventoryService].flatMap(operationsOf).map((it) => ({
    rpc: `${it.service.typeName}/${it.method.name}`,
    verb: it.verb,
    path: it.path,
    params: it.params.map(([{ localName }]) => localName),
    query: it.query.map(({ localName }) => localName),
    headers: it.requestHeaders.map(({ name, field }) => [name, field.localName]),
    body: it.body?.kind === "field" ? it.body.field.localName : undefined,
    mask: it.updateMask?.localName,
    response: it.response?.localName,
    status: it.successStatus,
    location: getOption(it.method, annotations.operation).location || undefined,
  }));
  const statuses = ErrorReasonSchema.values.map((value) => [
    value.localName,
    getOption(value, annotations.error).httpStatus || undefined,
  ]);
  mkdirSync(join(source, "gen"), { recursive: true });
  writeFileSync(
    join(source, "gen/http.ts"),
    `// Made by scripts/build-console.ts from the contract.
export interface HttpOperation {
  readonly rpc: string;
  readonly verb: string;
  readonly path: string;
  readonly params: readonly string[];
  readonly query: readonly string[];
  readonly headers: readonly (readonly [name: string, field: string])[];
  readonly body?: string;
  readonly mask?: string;
  readonly response?: string;
  readonly status: number;
  readonly location?: string;
}
export const operations: readonly HttpOperation[] = ${JSON.stringify(operations, null, 2)};
export const statuses: Readonly<Record<string, number>> = ${JSON.stringify(Object.fromEntries(statuses), null, 2)};
export const phrases: Readonly<Record<number, string>> = ${JSON.stringify(STATUS_CODES, null, 2)};
`,
  );
}

async function build(): Promise<void> {
  const bundle = await rolldown({
    input: join(source, "main.tsx"),
    platform: "browser",
    tsconfig: false,
    transform: { target: "es2022", jsx: { runtime: "automatic", importSource: "preact" } },
  });
  const { output } = await bundle.generate({ format: "es", minify: true, codeSplitting: false });
  const [{ code }] = output;
  rmSync(join(source, "dist"), { recursive: true, force: true });
  mkdirSync(assets, { recursive: true });
  const script = writeAsset("console", "js", code);
  const style = writeAsset("console", "css", readFileSync(join(source, "style.css"), "utf8"));
  const icon = writeAsset("icon", "svg", readFileSync(join(source, "icon.svg"), "utf8"));
  const page = readFileSync(join(source, "index.html"), "utf8")
    .replace("main.tsx", `console/${script}`)
    .replace("style.css", `console/${style}`)
    .replaceAll("icon.svg", `console/${icon}`);
  writeFileSync(join(source, "dist/index.html"), page);
}

function writeAsset(name: string, type: string, content: string): string {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  const file = `${name}-${hash}.${type}`;
  writeFileSync(join(assets, file), content);
  writeFileSync(join(assets, `${file}.gz`), gzipSync(content, { level: 9 }));
  return file;
}
