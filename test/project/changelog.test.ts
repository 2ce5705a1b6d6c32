/** CHANGELOG.md has each section once, which merges by union do not see to, and begins with the version that is here. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { obstacles } from "../../scripts/release-rules.ts";

const changelog = readFileSync("CHANGELOG.md", "utf8");

/** Each heading with that above it. */
function headings(text: string): readonly string[] {
  let section = "";
  return [...text.matchAll(/^##(#?) (.*)$/gm)].map(([, below, title = ""]) => {
    if (!below) section = title;
    return below ? `${section}: ${title}` : title;
  });
}

const twice = (text: string) => headings(text).filter((heading, i, all) => all.indexOf(heading) !== i);

test("each section once", () => {
  expect(headings(changelog)).toEqual(expect.arrayContaining(["Unreleased", "1.0.0 - 2026-11-26"]));
  expect(twice(changelog)).toEqual([]);
  const merged = "## Unreleased\n### Added\n### Fixed\n### Added\n## 1.0.0\n### Fixed\n## 1.0.0\n";
  expect(twice(merged)).toEqual(["Unreleased: Added", "1.0.0"]);
});

test("the version of package.json has its section", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const chart = readFileSync("charts/petstore/Chart.yaml", "utf8");
  expect(obstacles({ version, others: [], changelog, chart, changes: [], tagged: "none" }, true)).toEqual([]);
});
