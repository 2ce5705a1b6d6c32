/** The alerts as Prometheus reads them. They are few, and each is a symptom that callers feel or soon will. Pure. */
import { objectives, type Thresholds, thresholds } from "./objectives.ts";

export const RUNBOOKS = "docs/runbooks.md";

/** Names of OpenTelemetry are also those of other applications, which the same Prometheus may ask. */
export const JOB = 'job="petstore"';
const REQUESTS = "http_server_request_duration_seconds";
/** Who asks whether the petstore is ready wants to hear 503. */
const NO_PROBE = `${JOB},http_route!~".*/(healthz|readyz)"`;
/** A stream lasts as long as its reader likes. */
const NO_STREAM = `${JOB},http_route!~".*/(healthz|readyz|events|Watch[A-Za-z]+)"`;

export function alertsOf({ burns, down, lasting, pendingSeconds, outboxSeconds }: Thresholds) {
  const { answered, fast } = objectives;
  /** The shares of bad answers are above the budget, `factor` times, in both windows of a burn. */
  const burning = (budget: number, badIn: (window: string) => string) =>
    burns
      .map(({ factor, long, short }) => {
        const limit = Number((factor * budget).toPrecision(6));
        return [`  ${badIn(long)} > ${limit}`, `and\n  ${badIn(short)} > ${limit}`].join("\n");
      })
      .join("\nor\n");
  const rate = (series: string, window: string) => `sum(rate(${REQUESTS}${series}[${window}]))`;
  const failed = (window: string) =>
    `${rate(`_count{${NO_PROBE},http_response_status_code=~"5.."}`, window)} / ${rate(`_count{${NO_PROBE}}`, window)}`;
  const slow = (window: string) =>
    `1 - ${rate(`_bucket{${NO_STREAM},le="${fast.seconds}"}`, window)} / ${rate(`_count{${NO_STREAM}}`, window)}`;
  const alert = (name: string, summary: string, expr: string, lasting?: string) => ({
    alert: name,
    expr,
    ...(lasting && { for: lasting }),
    labels: { severity: "page" },
    annotations: { summary, runbook_url: `${RUNBOOKS}#${name.toLowerCase()}` },
  });
  return [
    alert("PetstoreDown", "{{ $labels.instance }} does not answer.", `up{${JOB}} == 0`, down),
    alert(
      "PetstoreFailing",
      "{{ $value | humanizePercentage }} of all answers are 5xx.",
      burning(1 - answered, failed),
    ),
    alert(
      "PetstoreSlow",
      `{{ $value | humanizePercentage }} of all answers take more than ${1000 * fast.seconds} ms.`,
      burning(1 - fast.share, slow),
    ),
    alert(
      "PetstoreUnfinished",
      "The oldest unfinished {{ $labels.kind }} is {{ $value | humanizeDuration }} old.",
      // Of inventory it is the lag below.
      `max by (kind) (petstore_oldest_pending_seconds{${JOB},kind!="inventory"}) > ${pendingSeconds}`,
      lasting,
    ),
    alert(
      "PetstoreOutboxLag",
      "Changes have waited for {{ $value | humanizeDuration }} to be told to another service.",
      `max(petstore_outbox_lag_seconds{${JOB}}) > ${outboxSeconds}`,
      lasting,
    ),
    alert(
      "PetstoreUnsettled",
      "Reservations that could not be settled: {{ $value }}. Their units stay held.",
      `max(petstore_unsettled_reservations{${JOB}}) > 0`,
      lasting,
    ),
    alert(
      "PetstoreViolation",
      "{{ $value }} records break the invariant {{ $labels.invariant }}.",
      // What stays unfinished has an alert of its own.
      `max by (invariant) (petstore_invariant_violations{${JOB},invariant!="stuck-pending"}) > 0`,
    ),
  ];
}

/** A file of rules. */
export const rulesOf = (given: Thresholds = thresholds) => ({
  groups: [{ name: "petstore", rules: alertsOf(given) }],
});
