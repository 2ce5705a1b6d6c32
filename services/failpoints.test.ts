/** `docs/reliability.md` names what there is: every failpoint, and files that exist. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync("docs/reliability.md", "utf8");
const code = globSync("services/**/*.ts")
  .filter((path) => !path.endsWith(".test.ts"))
  .map((path) => readFileSync(path, "utf8"))
  .join("\n");
const all = (text: string, pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, name]) => name))].sort();

test("every failpoint in the code is in the table of docs/reliability.md, and no other", () => {
  const documented = all(page.slice(page.indexOf("## Failpoints")), /^\| `([a-z.-]+)` \|/gm);
  expect(documented).toEqual(all(code, /(?:failpoint\(|change\([^;]*?)"([a-z]+\.[a-z-]+)"/g));
  expect(documented.length).toBeGreaterThan(20);
});

test("every file that docs/reliability.md links to exists", () => {
  const links = all(page, /\]\(([\w./-]+\.\w+)[^)]*\)/g);
  expect(links.filter((link) => !existsSync(`docs/${link}`))).toEqual([]);
  expect(links.length).toBeGreaterThan(10);
});
