/** The package as others get it: its README is true, and a browser loads little. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";
import { ErrorReason } from "../../proto/gen/petstore/common/v1/error_reason_pb.ts";
import { ErrorReason as OwnReason } from "./gen/petstore/common/v1/error_reason_pb.ts";

const textOf = (path: string) => readFileSync(join(import.meta.dirname, path), "utf8");

test.each(["order.js", "watch.js", "shop/use-pets.ts", "shop/vite.config.js"])(
  "the README shows the example %s as it is",
  (example) => {
    expect(textOf("README.md")).toContain(`\`\`\`${example.slice(-2)}\n${textOf(join("example", example))}\`\`\``);
  },
);

test("a browser loads 30 KB at most, packed, with all that it needs", async () => {
  const bundle = await rolldown({ input: join(import.meta.dirname, "index.ts"), platform: "browser" });
  const { output } = await bundle.generate({ minify: true });
  expect(output.map(({ fileName }) => fileName)).toEqual(["index.js"]);
  expect(output[0].imports).toEqual([]);
  expect(gzipSync(output[0].code).length).toBeLessThan(30_000);
});

test("it knows the reasons of the contract", () => {
  expect(OwnReason).toEqual(ErrorReason);
});
