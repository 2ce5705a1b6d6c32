/** Compares what is served of a descriptor set with the counts in a file, or writes them there. `.ci/googleapis` runs it. */
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { countsOf } from "./counts.ts";

const { values, positionals } = parseArgs({ options: { write: { type: "boolean" } }, allowPositionals: true });
const [set = "", file = ""] = positionals;

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set)));
const counts = countsOf([...registry].filter((one) => one.kind === "service"));

if (values.write) writeFileSync(file, counts);
const differs = counts !== readFileSync(file, "utf8");
process.stdout.write(counts.split("\n", 2).join("\n").concat("\n"));
if (differs) {
  process.stdout.write(`\n${counts}\nThat is not what ${file} says. If it should be: .ci/googleapis --write\n`);
  process.exitCode = 1;
}
