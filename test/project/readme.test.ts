/** What the README and its page of variables say beside its commands, which are run by `commands.test.ts`. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const readme = readFileSync("README.md", "utf8");
const configuration = readFileSync("docs/configuration.md", "utf8");
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "gms"))].map(([, text]) => text ?? "");

test("the example is the file", () => {
  expect(blocks("ts")).toEqual([readFileSync("examples/connect.ts", "utf8")]);
});

test("the table of variables is complete, and each of them is read", () => {
  const settings = globSync("{processes,services,gateway,launcher,packages/trace}/*.ts").map((path) =>
    readFileSync(path, "utf8"),
  );
  const read = settings.flatMap((text) => [...text.matchAll(/\b([A-Z][A-Z_]+): (?:withDefault|optional|required)\(/g)]);
  const names = new Set(read.map(([, name]) => name ?? ""));
  expect(names.size).toBeGreaterThan(25);
  for (const name of names) expect(configuration, name).toContain(`\`${name}\``);
  const rows = configuration.split("\n").filter((line) => /^\| `[A-Z_]+`/.test(line));
  const told = rows.flatMap((row) => row.split("|")[1]?.match(/[A-Z_]+/g) ?? []);
  expect(told.filter((name) => !names.has(name))).toEqual([]);
});
