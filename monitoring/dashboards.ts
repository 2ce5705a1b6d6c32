/**
 * Two dashboards for Grafana, made of the metrics that processes declare: a metric that is added has a panel by that. Pure.
 */
import { VizLegendOptionsBuilder } from "@grafana/grafana-foundation-sdk/common";
import { type Dashboard, DashboardBuilder, DatasourceVariableBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder } from "@grafana/grafana-foundation-sdk/timeseries";
import { type Declaration, unitOf } from "@petstore/metrics/declaration";
import { METRICS } from "../processes/metrics.ts";
import { JOB } from "./rules.ts";

/** What callers meet, from the gateway to the store; all else is about records and processes. */
const IS_ABOUT_CALLS = /^(http|rpc|db)_|^petstore_(admission|refused|streams|deprecated)/;
/** Labels by which durations are not told apart. */
const OUTCOMES = /status_code$|^error_type$|system_name$/;
/** What a process has of its own: it is told by process, for one of them may be short of it. */
const IS_OF_A_PROCESS = /^(process|nodejs|v8js)_/;
/** The Prometheus that is chosen above the panels. */
const SOURCE = "source";
const WIDTH = 12;
const HEIGHT = 8;

interface Query {
  readonly expr: string;
  /** Of each line, by its labels. */
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly unit: string;
  readonly queries: readonly Query[];
}

const legendOf = (labels: readonly string[]) => labels.map((label) => `{{${label}}}`).join(" ");
const by = (labels: readonly string[]) => (labels.length > 0 ? ` by (${labels.join(", ")})` : "");

/** How often, of a histogram also how long, of a gauge how much. */
function panelsOf({ kind, name, help: description, labels: own }: Declaration): readonly Panel[] {
  const labels = kind === "gauge" || IS_OF_A_PROCESS.test(name) ? [...own, "instance"] : own;
  const unit = unitOf({ name }).replace("seconds", "s") || "short";
  if (kind === "gauge")
    return [{ title: name, description, unit, queries: [{ expr: `${name}{${JOB}}`, legend: legendOf(labels) }] }];
  const series = kind === "histogram" ? `${name}_count` : name;
  const often: Panel = {
    title: `${name}, per second`,
    description,
    unit: "short",
    // What has not happened yet has no series.
    queries: [
      {
        expr: `sum${by(labels)} (rate(${series}{${JOB}}[$__rate_interval])) or on() vector(0)`,
        legend: legendOf(labels),
      },
    ],
  };
  if (kind === "counter") return [often];
  const about = labels.filter((label) => !OUTCOMES.test(label));
  const quantile = (share: number): Query => ({
    expr: `histogram_quantile(${share}, sum${by([...about, "le"])} (rate(${name}_bucket{${JOB}}[$__rate_interval])))`,
    legend: `p${100 * share} ${legendOf(about)}`,
  });
  return [often, { title: name, description, unit, queries: [quantile(0.5), quantile(0.99)] }];
}

function dashboardOf(title: string, declarations: readonly Declaration[]): Dashboard {
  const dashboard = new DashboardBuilder(title)
    .uid(title.toLowerCase().replaceAll(/\W+/g, "-"))
    .tags(["petstore"])
    .withVariable(new DatasourceVariableBuilder(SOURCE).label("Prometheus").type("prometheus"))
    .refresh("30s")
    .time({ from: "now-1h", to: "now" });
  for (const { title, description, unit, queries } of declarations.flatMap(panelsOf)) {
    const panel = new PanelBuilder().title(title).description(description).unit(unit).min(0).span(WIDTH).height(HEIGHT);
    panel.datasource({ type: "prometheus", uid: `\${${SOURCE}}` });
    panel.legend(new VizLegendOptionsBuilder().showLegend(true));
    for (const { expr, legend } of queries) panel.withTarget(new DataqueryBuilder().expr(expr).legendFormat(legend));
    dashboard.withPanel(panel);
  }
  return dashboard.build();
}

/** By the names of their files. */
export function dashboards(
  declarations: readonly Declaration[] = Object.values(METRICS),
): ReadonlyMap<string, Dashboard> {
  const { calls = [], inside = [] } = Object.groupBy(declarations, ({ name }) =>
    IS_ABOUT_CALLS.test(name) ? "calls" : "inside",
  );
  return new Map([
    ["calls.json", dashboardOf("Petstore: calls", calls)],
    ["inside.json", dashboardOf("Petstore: records and processes", inside)],
  ]);
}
