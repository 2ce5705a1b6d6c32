/** The tables of docs/security.md are what `test/attacks/protections.ts` and `checklists.ts` say, and the tests that they name exist. */
import { globSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { describe, expect, test } from "vitest";
import { envoy, owasp, type Risk } from "../attacks/checklists.ts";
import { type Protection, type ProtectionName, protections } from "../attacks/protections.ts";

const PAGE = "docs/security.md";
const page = readFileSync(PAGE, "utf8");
const all = Object.entries<Protection>(protections);
const trials = all.flatMap(([name, { trials }]) => trials.map((trial) => ({ name, ...trial })));

const link = (file: string) => `[${file}](${relative("docs", file)})`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
const named = (test: string) => (test === "" ? "" : `: ${test.replaceAll("_", "\\_")}`);

const tables: Record<string, string> = {
  protections: table(
    ["protection", "attack", "test"],
    all.flatMap(([name, { protection, trials }]) =>
      trials.map(({ attack, file, test }, i) => [
        i === 0 ? `<a id="${name}"></a>${protection}` : "",
        attack.replaceAll("_", "\\_"),
        link(file) + named(test),
      ]),
    ),
  ),
  owasp: risks(owasp),
  envoy: risks(envoy),
};

function risks(rows: readonly Risk[]): string {
  const protection = (name: ProtectionName) => `[${name}](#${name})`;
  return table(
    ["risk or recommendation", "protections", "answer"],
    rows.map(({ name, by, answer }) => [name.replaceAll("_", "\\_"), by.map(protection).join(", ") || "none", answer]),
  );
}

/** The page with its tables made anew, each between two comments that name it. */
const made = page.replaceAll(
  /(<!-- (\w+): made by test\/project\/security-page\.test\.ts -->\n)[\s\S]*?(<!-- end -->)/g,
  (_, begin, name, end) => `${begin}\n${tables[name]}\n\n${end}`,
);

test("the page has the tables (`npx vitest run test/project/security-page.test.ts -u` writes them)", async () => {
  for (const content of Object.values(tables)) expect(made).toContain(content);
  await expect(made).toMatchFileSnapshot(`../../${PAGE}`);
});

describe("the tests that it names are there", () => {
  test.each(trials)("$file: $test", ({ file, test }) => expect(titlesIn(file)).toContain(test || titlesIn(file)[0]));
});

/** Titles of tests and of their groups, also of cases that stand in a table or a record. */
function titlesIn(file: string): readonly string[] {
  const text = readFileSync(file, "utf8");
  const quoted = [...text.matchAll(/[([,]\s*(["'`])((?:(?!\1)[^\\\n]|\\.)*)\1,/g)].map(([, , title = ""]) => title);
  const members = [...text.matchAll(/^ {2}(?:async )?([A-Z_]+)(?:\(\) \{|:)/gm)].map(([, title = ""]) => title);
  return [...quoted, ...members].map((title) => title.replaceAll(/\\(.)/g, "$1"));
}

test("a title that is not there is found out", () => {
  expect(titlesIn("test/attacks/dns-rebinding.test.ts")).toContain("%s answers to the names of loopback alone");
  expect(titlesIn("test/attacks/dns-rebinding.test.ts")).not.toContain("answers to the names of loopback alone");
});

test("every protection was tried, and every file of attacks is named", () => {
  for (const [name, { trials }] of all) expect([name, trials.length]).not.toEqual([name, 0]);
  const files = new Set(trials.map(({ file }) => file));
  expect(globSync("test/attacks/*.test.ts").filter((file) => !files.has(file))).toEqual([]);
});

test("every row of the lists has a protection, or says why it does not apply", () => {
  expect(owasp).toHaveLength(10);
  for (const { name, by, answer } of [...owasp, ...envoy])
    expect([name, by.length > 0 || answer.startsWith("Does not apply:")]).toEqual([name, true]);
});
