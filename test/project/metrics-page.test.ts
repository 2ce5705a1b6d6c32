/** The table of docs/metrics.md is what the processes declare. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { METRICS } from "../../processes/metrics.ts";

const PAGE = "docs/metrics.md";
const all = Object.values(METRICS);

const row = ({ name, kind, labels, help }: (typeof all)[number]) =>
  `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`;
const table = ["| metric | kind | labels | |", "|---|---|---|---|", ...all.map(row)].join("\n");

test("the page has the table (`npx vitest run test/project/metrics-page.test.ts -u` writes it)", async () => {
  const made = readFileSync(PAGE, "utf8").replace(
    /(<!-- metrics: made by test\/project\/metrics-page\.test\.ts -->\n)[\s\S]*?(<!-- end -->)/,
    (_, begin, end) => `${begin}\n${table}\n\n${end}`,
  );
  expect(made).toContain(table);
  await expect(made).toMatchFileSnapshot(`../../${PAGE}`);
});

test("each has its own name, and a help that needs no quotes", () => {
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  for (const { name, help } of all) expect([name, help]).toEqual([name, expect.stringMatching(/^[^"\\\n|]+\.$/)]);
});
