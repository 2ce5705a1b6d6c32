/** What the pages say of the code exists: every file that one names, such as `gateway/app.ts`. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";

const pages = globSync("{.,docs/**,bench,packages/*,services/**}/*.md").filter((page) => page !== "CHANGELOG.md");
const NAME = /`([\w.-]+(?:\/[\w.-]+)+\.(?:ts|mjs|js|proto|md|json|ya?ml))`/g;
const namesIn = (text: string) => [...text.matchAll(NAME)].map(([, name]) => name ?? "");

/** Names are told from the root, from the page's folder, or from that of the package that the page is about. */
const missingIn = (page: string, text = readFileSync(page, "utf8")) => {
  const places = [".", dirname(page), ...globSync("packages/*")];
  return namesIn(text).filter((name) => !places.some((place) => existsSync(join(place, name))));
};

test("the pages are found, and names in them", () => {
  expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/architecture.md", "packages/store/README.md"]));
  expect(namesIn(readFileSync("docs/architecture.md", "utf8"))).toContain("packages/rpc/server/dispatcher.ts");
  expect(namesIn(readFileSync("CONTRIBUTING.md", "utf8")).length).toBeGreaterThan(20);
  expect(missingIn("README.md", "`gateway/app.ts`, `gateway/nothing.ts`")).toEqual(["gateway/nothing.ts"]);
});

describe("every file that a page names exists", () => {
  test.each(pages)("%s", (page) => expect(missingIn(page)).toEqual([]));
});
