import { expect, test } from "vitest";
import { notesOf, obstacles } from "./release-rules.ts";

const changelog =
  "# Changelog\n\n## Unreleased\n\n### Added\n\n## 1.1.0 - 2027-01-02\n\n- New.\n\n## 1.0.0 - 2026-11-26\n";
const chart = "apiVersion: v2\nversion: 1.1.0\nappVersion: 1.1.0\n";
const tree = { version: "1.1.0", others: [], changelog, chart, changes: [], tagged: "none" } as const;
/** As it would be at that version. */
const at = (version: string) => ({ version, chart: chart.replaceAll("1.1.0", version) });

test("nothing is in the way of a commit that has its version and its section", () => {
  expect(obstacles(tree, false)).toEqual([]);
});

test.each([
  [
    "what is not committed",
    { changes: [" M a.ts", "?? b.ts"] },
    "Commit or remove what is in none:\n   M a.ts\n  ?? b.ts",
  ],
  [
    "another version of the chart",
    { chart: chart.replace("\nversion: 1.1.0", "\nversion: 1.0.0") },
    "Set its version and appVersion by hand",
  ],
  [
    "a chart of another version",
    { chart: chart.replace("appVersion: 1.1.0", "appVersion: 1.0.0") },
    "Set its version and appVersion by hand",
  ],
  ["another version in a package", { others: ["packages/rpc/package.json"] }, "npm version 1.1.0 --workspaces"],
  ["a version without a section", at("1.2.0"), 'CHANGELOG.md begins with 1.1.0. Put what is new below "## 1.2.0'],
  ["an older section", at("1.0.0"), "package.json has version 1.0.0, and CHANGELOG.md begins with 1.1.0"],
  ["no section at all", { changelog: "# Changelog\n" }, "CHANGELOG.md begins with no version"],
  ["a tag at another commit", { tagged: "another" }, "The tag v1.1.0 is at another commit. Set a higher version"],
] as const)("%s is, and it says what to do", (_, change, words) => {
  for (const dryRun of [true, false])
    expect(obstacles({ ...tree, ...change }, dryRun)).toEqual([expect.stringContaining(words)]);
});

test("all that is in the way is told at once", () => {
  expect(obstacles({ ...tree, ...at("2.0.0"), changes: ["?? a"], tagged: "another" }, true)).toHaveLength(3);
});

test("a commit that is tagged is built again only to compare", () => {
  expect(obstacles({ ...tree, tagged: "this" }, true)).toEqual([]);
  expect(obstacles({ ...tree, tagged: "this" }, false)).toEqual([
    expect.stringContaining("npm run release -- --dry-run"),
  ]);
});

test("what is below Unreleased would be in a release, and in no notes", () => {
  const pending = { ...tree, changelog: changelog.replace("### Added\n", "### Added\n\n- Later.\n") };
  expect(obstacles(pending, true)).toEqual([]);
  expect(obstacles(pending, false)).toEqual([
    expect.stringContaining('what is in this release belongs below "## 1.1.0"'),
  ]);
});

test("the notes are the version's own section", () => {
  expect(notesOf(changelog, "1.1.0")).toBe("# petstore 1.1.0 - 2027-01-02\n\n- New.\n");
  expect(notesOf(changelog, "1.0.0")).toBe("# petstore 1.0.0 - 2026-11-26\n");
});
