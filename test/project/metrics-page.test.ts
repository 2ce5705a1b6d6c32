/** The table of docs/metrics.md is what the processes declare. */
import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
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

describe("names are those of OpenTelemetry's semantic conventions, as Prometheus writes them", () => {
  /** What the conventions have under a name that begins so, without what they have given up. */
  const published = (prefix: "METRIC" | "ATTR") => {
    const constant = new RegExp(`/\\*\\*((?:(?!\\*/).)*)\\*/\\s*const ${prefix}_\\w+ = "([^"]+)"`, "gs");
    const texts = globSync("node_modules/@opentelemetry/semantic-conventions/dist/{stable,experimental}_*.mjs");
    const found = texts.flatMap((path) => [...readFileSync(path, "utf8").matchAll(constant)]);
    return new Set(
      found.flatMap(([, about = "", name = ""]) => (about.includes("@deprecated") ? [] : name.replaceAll(".", "_"))),
    );
  };
  /** Prometheus' own: in the conventions it ends in `_count`, as only a part of a histogram may. */
  const OTHERS = ["process_open_fds"];
  const ours = ({ name }: (typeof all)[number]) => name.startsWith("petstore_") || OTHERS.includes(name);
  const theirs = all.filter((metric) => !ours(metric));

  test("metrics, without unit and suffix", () => {
    const known = published("METRIC");
    expect(known.size).toBeGreaterThan(100);
    const names = theirs.map(({ name }) => name.replace(/(_seconds|_bytes)?(_total)?$/, ""));
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });

  test("labels", () => {
    const known = published("ATTR");
    expect(known.has("rpc_grpc_status_code")).toBe(false); // given up
    const labels = [...new Set(theirs.flatMap(({ labels }) => labels as readonly string[]))];
    expect(labels.filter((label) => !known.has(label))).toEqual([]);
  });
});
