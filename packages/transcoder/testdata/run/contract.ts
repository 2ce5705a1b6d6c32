/** Contracts of testdata. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { DescService, FileRegistry } from "@bufbuild/protobuf";
import { compileProtos } from "../../fixtures/compile.ts";

/** Compiles files below testdata. They import each other by their names alone. */
export const compileContract = (...names: readonly string[]): FileRegistry =>
  compileProtos(
    Object.fromEntries(
      names.map((name) => [basename(name), readFileSync(join(import.meta.dirname, "..", name), "utf8")]),
    ),
  );

export const servicesOf = (contract: FileRegistry): DescService[] =>
  [...contract].filter((one) => one.kind === "service");
