/** Programs on Node that load the contract as they start, as NestJS does, read it with protobufjs, which knows less than buf. */
import { globSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { loadSync } from "@grpc/proto-loader";
import { expect, test } from "vitest";
import { parse } from "yaml";

const { modules } = parse(readFileSync("buf.yaml", "utf8")) as { modules: { path: string }[] };
const includeDirs = modules.map(({ path }) => path);
const files = globSync("{proto,packages,bench}/**/*.proto", { exclude: (path) => path.endsWith("node_modules") });

test("all of them are found", () => {
  expect(files.length).toBeGreaterThan(20);
  for (const part of ["proto/petstore/pet/v1/pet.proto", "packages/transcoder/example/proto/shelf.proto"])
    expect(files).toContain(part);
});

test.each(files.sort())("%s", (file) => {
  expect(() => loadSync(file, { includeDirs: [...includeDirs, dirname(file)] })).not.toThrow();
});
