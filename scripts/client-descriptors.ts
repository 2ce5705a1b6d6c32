/**
 * Writes the descriptors in the client's generated code as the bytes that they are, instead of base64, in which gzip finds no
 * name that comes again: a page loads 1.6 KB less.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

for (const path of globSync(join(import.meta.dirname, "../packages/client/gen/**/*.ts"))) {
  const bytes = (_: string, base64: string) => `fileDesc(/*@__PURE__*/ btoa(${JSON.stringify(atob(base64))})`;
  writeFileSync(path, readFileSync(path, "utf8").replace(/fileDesc\("([^"]*)"/, bytes));
}
