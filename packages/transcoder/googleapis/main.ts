/** Compares what is served of a descriptor set with the counts in a file, or writes them there. `.ci/googleapis` runs it. */
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readDescriptorSet } from "../source/contract.ts";
import { countsOf } from "./counts.ts";

const { values, positionals } = parseArgs({ options: { write: { type: "boolean" } }, allowPositionals: true });
const [set = "", file = ""] = positionals;

const counts = countsOf((await readDescriptorSet(set)).services);

if (values.write) writeFileSync(file, counts);
const differs = counts !== readFileSync(file, "utf8");
process.stdout.write(counts.split("\n", 2).join("\n").concat("\n"));
if (differs) {
  process.stdout.write(`\n${counts}\nThat is not what ${file} says. If it should be: .ci/googleapis --write\n`);
  process.exitCode = 1;
}
