/** A process that lets every `step`th run happen from `first` on, and shrinks and tells the first that fails. */
import { type Coverage, createCoverage } from "./coverage.ts";
import { draw, play } from "./draw.ts";
import { holdTimers } from "./held-timers.ts";
import type { Event } from "./histories/history.ts";
import { shrink } from "./shrink.ts";
import { story } from "./story.ts";

/** The arguments of the process, as JSON. */
export interface Part {
  readonly seed: number;
  readonly first: number;
  readonly step: number;
  /** Not this run, nor any after it. */
  readonly end: number;
}
export type Report =
  | { readonly is: "ran"; readonly runs: number }
  | { readonly is: "failed"; readonly run: number; readonly violations: readonly string[] }
  | { readonly is: "told"; readonly story: readonly string[] }
  | { readonly is: "over"; readonly coverage: Coverage };

const REPORT_EVERY_MS = 500;

// Deadlines are the simulation's own: real time must not end a call.
holdTimers();
// Of an error only its message is told, and most are thrown to be caught.
Error.stackTraceLimit = 0;

process.once("disconnect", () => process.exit());
const report = (report: Report) => new Promise<void>((sent) => void process.send?.(report, () => sent()));

const { seed, first, step, end } = JSON.parse(process.argv[2] ?? "") as Part;
const { coverage, witness } = createCoverage();
let runs = 0;
let reportedAt = Date.now();
for (let number = first; number < end; number += step) {
  const run = draw(seed, number);
  const violations = await play(run, witness);
  runs++;
  if (violations.length > 0) {
    await report({ is: "failed", run: number, violations });
    const least = await shrink(run, violations, play);
    const events: Event[] = [];
    const broken = await play(least, (event) => void events.push(event));
    await report({ is: "told", story: story(events, broken) });
    break;
  }
  if (Date.now() - reportedAt > REPORT_EVERY_MS || number + step >= end) {
    await report({ is: "ran", runs });
    runs = 0;
    reportedAt = Date.now();
  }
}
await report({ is: "over", coverage });
process.disconnect?.();
