/** What Prometheus reads is what the objectives say, is tried by promtool, and has a page. `.ci/alerts` runs promtool. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { adminPortOf, processNames } from "../processes/names.ts";
import { thresholds } from "./objectives.ts";
import { alertsOf, RUNBOOKS, rulesOf } from "./rules.ts";

const HEAD = "# Made of objectives.ts by rules.ts: npx vitest run monitoring/rules.test.ts -u\n";
const alerts = alertsOf(thresholds).map(({ alert }) => alert);

test("alerts.yml is made of the objectives (`npx vitest run monitoring/rules.test.ts -u` writes it)", async () => {
  await expect(HEAD + stringify(rulesOf(), { lineWidth: 0 })).toMatchFileSnapshot("alerts.yml");
});

interface Case {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}
const cases: Case[] = parse(readFileSync("monitoring/alerts.test.yml", "utf8")).tests.flatMap(
  ({ alert_rule_test }: { alert_rule_test: Case[] }) => alert_rule_test,
);

test.each(alerts)("%s has a case in which it fires, and one in which it does not", (alert) => {
  const fires = cases.filter(({ alertname }) => alertname === alert).map(({ exp_alerts }) => exp_alerts.length > 0);
  expect(new Set(fires)).toEqual(new Set([true, false]));
});

test("each alert has a section among the runbooks, and each section an alert", () => {
  const sections = [...readFileSync(RUNBOOKS, "utf8").matchAll(/^## (Petstore\w+)$/gm)].map(([, name]) => name);
  expect(sections).toEqual(alerts);
});

test("each query of a page is tried", () => {
  const pages = globSync("docs/*.md").map((page) => readFileSync(page, "utf8"));
  const queries = pages.flatMap((page) => [...page.matchAll(/^```promql\n(.*?)\n```$/gms)].map(([, query]) => query));
  const { tests } = parse(readFileSync("monitoring/queries.test.yml", "utf8"));
  const tried: { readonly expr: string }[] = tests.flatMap(({ promql_expr_test }: never) => promql_expr_test);
  expect(queries).not.toEqual([]);
  expect(queries.toSorted()).toEqual([...new Set(tried.map(({ expr }) => expr.trimEnd()))].toSorted());
});

const targetsOf = (file: string): string[] =>
  parse(readFileSync(file, "utf8")).scrape_configs[0].static_configs[0].targets;

test("Prometheus asks every process at its admin port", () => {
  const ports = processNames.map((name) => adminPortOf(name, 8080, 1, new Map()));
  expect(targetsOf("monitoring/prometheus.yml")).toEqual(ports.map((port) => `127.0.0.1:${port}`));
  expect(targetsOf("monitoring/prometheus-compose.yml")).toEqual(processNames.map((name) => `${name}:8180`));
});
