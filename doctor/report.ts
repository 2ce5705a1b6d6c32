/** What was found, for people. Pure. */
import { advice, type Finding } from "./findings.ts";

/** Findings of a kind that are written out. */
const MAX_LINES = 20;
const REPAIR = "npm run -s doctor -- --repair";

export function report(found: readonly Finding[]): string {
  if (found.length === 0) return "Nothing found: all is as it should be.\n";
  const kinds = [...Map.groupBy(found, ({ invariant, repair }) => `${invariant} ${repair}`).values()];
  return `${kinds.map(section).join("\n")}\n${summary(found)}\n`;
}

function section(kind: readonly Finding[]): string {
  const [{ invariant, repair }] = kind as readonly [Finding];
  const lines = kind
    .slice(0, MAX_LINES)
    .map(({ ids, detail }) => `  ${[ids.join(" "), detail].filter(Boolean).join("  ")}`);
  const more = kind.length > MAX_LINES ? [`  and ${kind.length - MAX_LINES} more: --json names them`] : [];
  const next =
    repair === "safe" && invariant !== "stuck-pending" ? `Stop the petstore, then: ${REPAIR}` : advice[invariant];
  return [invariant, ...lines, ...more, ...(next ? [`  -> ${next}`] : [])].join("\n");
}

function summary(found: readonly Finding[]): string {
  const count = (repair: Finding["repair"]) => found.filter((one) => one.repair === repair).length;
  const parts = [
    [count("safe"), "safe to repair"],
    [count("manual"), "for somebody to decide"],
    [count(null), "around the petstore"],
  ] as const;
  const named = parts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return `\nFound: ${named.join(", ")}. docs/doctor.md says what each means.`;
}
