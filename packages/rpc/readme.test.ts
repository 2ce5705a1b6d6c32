/** The README's example is a program that runs. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const example = join(import.meta.dirname, "fixtures/example.ts");

test("the README shows the example, and it prints what the README says", () => {
  const readme = readFileSync(join(import.meta.dirname, "README.md"), "utf8");
  expect(readme).toContain(`\`\`\`ts\n${readFileSync(example, "utf8")}\`\`\`\n\nIt prints \`Emma\`.`);
  expect(execFileSync(process.execPath, [example], { encoding: "utf8" })).toBe("Emma\n");
});
