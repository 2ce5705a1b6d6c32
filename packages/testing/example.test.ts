import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const textOf = (path: string) => readFileSync(join(import.meta.dirname, path), "utf8");

test.each(["orders.test.mjs", "orders.test.cjs", "conftest.py", "orders_test.go"])(
  "the page shows the example %s as it is",
  (example) => {
    expect(textOf("../../docs/testing.md")).toContain(`\n${textOf(join("example", example))}\`\`\`\n`);
  },
);
