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
  expect(queriesIn(added)).toEqual(["petstore_moods"]);
  expect(added.get("inside.json")?.panels).toMatchObject([
    { title: "petstore_moods", description: "How pets feel.", targets: [{ legendFormat: "{{mood}} {{instance}}" }] },
  ]);
});

test("alerts are about what is declared", () => {
  const named = alertsOf(thresholds).flatMap(({ expr }) => metricsIn(expr));
  expect(named).toContain("petstore_outbox_lag_seconds");
  expect(named.filter((name) => !declared.includes(name))).toEqual([]);
});
