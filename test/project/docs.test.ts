/** What the pages point at exists: every file that one names, such as `gateway/app.ts`, every link, every npm script. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";

const pages = globSync("{.,docs/**,bench,examples/*,packages/*,services/**}/*.md").filter(
  (page) => page !== "CHANGELOG.md",
);
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

/** Where a link into a page may lead: its headings as GitHub names them, and what it names itself. */
function anchorsOf(page: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = "", id] of prose(page).matchAll(/^#+ +(.*)$|<a id="([^"]+)">/gm)) {
    const words = heading.replaceAll(/\]\([^)]*\)/g, "").toLowerCase();
    const slug = id ?? words.replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, "").replaceAll(" ", "-");
    let name = slug;
    for (let again = 1; anchors.has(name); again++) name = `${slug}-${again}`;
    anchors.add(name);
  }
  return anchors;
}

/** Without blocks of code. */
const prose = (text: string) => text.replaceAll(/^```.*?^```/gms, "");

/** Links of a page that lead nowhere. */
function deadLinks(page: string, text = readFileSync(page, "utf8")): string[] {
  const links = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link ?? "");
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : join(dirname(page), path);
    if (!existsSync(target)) return true;
    return anchor !== undefined && !anchorsOf(target === page ? text : readFileSync(target, "utf8")).has(anchor);
  });
}

test("dead links are found", () => {
  const heading = "# `AUTH_MODE` and [keys](x.md), at once!\n## Twice\n## Twice\n```sh\n# none\n```\n";
  expect([...anchorsOf(heading)]).toEqual(["auth_mode-and-keys-at-once", "twice", "twice-1"]);
  const links = ["a.md", "docs/tls.md", "docs/tls.md#mutual-tls", "docs/tls.md#nothing", "#twice-1", "#none"];
  const text = `${heading}${links.map((link) => `[x](${link})`).join(" ")}`;
  expect(deadLinks("README.md", text)).toEqual(["x.md", "a.md", "docs/tls.md#nothing", "#none"]);
});

describe("every link leads somewhere", () => {
  test.each([...pages, "CHANGELOG.md"])("%s", (page) => expect(deadLinks(page)).toEqual([]));
});

describe("every npm script that a page names exists", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8"));
  test.each(pages)("%s", (page) => {
    const named = [...readFileSync(page, "utf8").matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name ?? "");
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
