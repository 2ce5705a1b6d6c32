/** Writes the OpenAPI documents of packages of a descriptor set into a folder, one each. `.ci/openapi-documents` runs it. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { filesBelow, jsonText, openApiDocument, selectServed } from "../index.ts";

const [set = "", folder = "", ...packages] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set)));
const services = [...registry].filter((one) => one.kind === "service");

for (const name of packages) {
  const own = services.filter(({ file }) => file.proto.package === name);
  const { served } = selectServed(own.map((desc) => ({ desc })));
  const operations = served.flatMap((service) => service.operations);
  if (operations.length === 0) throw new Error(`${name} has nothing that is served`);
  const sources = { operations, files: filesBelow(own.map(({ file }) => file)), deprecation: {} };
  const about = { title: name, version: "1.0.0", basePath: "", requestMs: 30_000 };
  writeFileSync(join(folder, `${name}.json`), jsonText(openApiDocument(sources, about)));
  process.stdout.write(`${name}: ${own.length} services, ${operations.length} operations\n`);
}
