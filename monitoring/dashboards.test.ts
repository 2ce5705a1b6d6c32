import { gauge } from "@petstore/metrics/declaration";
import { expect, test } from "vitest";
import { METRICS } from "../processes/metrics.ts";
import { dashboards } from "./dashboards.ts";
import { queriesIn } from "./fixtures/queries.ts";
import { thresholds } from "./objectives.ts";
import { alertsOf } from "./rules.ts";

const declared = Object.values(METRICS).map(({ name }) => name);
/** The metrics that an expression names, without functions, labels and ranges. */
const metricsIn = (expr: string): readonly string[] =>
  expr
    .replaceAll(/\{.*?\}|by \(.*?\)|\[.*?\]|histogram_quantile/g, "")
    .match(/\w+_\w+/g)
    ?.map((name) => name.replace(/_(bucket|count)$/, "")) ?? [];

test("each metric that processes declare is on one of two dashboards", () => {
  const shown = [...dashboards()].map((one) => new Set(queriesIn(new Map([one])).flatMap(metricsIn)));
  expect(shown.map((metrics) => metrics.has("http_server_request_duration_seconds"))).toEqual([true, false]);
  expect(shown.flatMap((metrics) => [...metrics]).sort()).toEqual(declared.toSorted());
});

test("a metric that is added has a panel by that", () => {
  const added = dashboards([gauge("petstore_moods", "How pets feel.", ["mood"])]);
  expect(queriesIn(added)).toEqual(['petstore_moods{job="petstore"}']);
  expect(added.get("inside.json")?.panels).toMatchObject([
    { title: "petstore_moods", description: "How pets feel.", targets: [{ legendFormat: "{{mood}} {{instance}}" }] },
  ]);
});

test("each panel is about the petstore alone, at the Prometheus that is chosen", () => {
  const all = dashboards();
  expect(queriesIn(all).filter((expr) => !expr.includes('{job="petstore"}'))).toEqual([]);
  for (const { templating, panels } of all.values()) {
    expect(templating?.list).toMatchObject([{ type: "datasource", query: "prometheus", name: "source" }]);
    for (const panel of panels ?? []) expect(panel).toMatchObject({ datasource: { uid: `\${source}` } });
  }
});

test("processes are told apart", () => {
  const about = /\b(process|nodejs|v8js)_/;
  const sums = queriesIn(dashboards()).filter((expr) => about.test(expr) && expr.includes("sum"));
  expect(sums.length).toBeGreaterThan(0);
  expect(sums.filter((expr) => !/sum by \([^)]*instance/.test(expr))).toEqual([]);
});

test("alerts are about what is declared", () => {
  const named = alertsOf(thresholds).flatMap(({ expr }) => metricsIn(expr));
  expect(named).toContain("petstore_outbox_lag_seconds");
  expect(named.filter((name) => !declared.includes(name))).toEqual([]);
});
