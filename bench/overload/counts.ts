/** Counts the outcomes of requests: by phase, by kind, and over time. */

/** The flood of requests; orders placed beside it; and the completion of these orders. */
const kinds = ["flood", "place", "complete"] as const;
export type Kind = (typeof kinds)[number];

export interface Found {
  readonly sent: number;
  /** Answers by status; 0 where the connection ended instead. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Delays of successful requests, in milliseconds from when they were due. */
  readonly p50: number;
  readonly p99: number;
  /** The same for refused requests. */
  readonly refusedP99: number;
}

/** A period of SLICE_MS, with the requests that were due in it. */
export interface Slice {
  readonly done: number;
  readonly refused: number;
  readonly p99: number;
}
export const SLICE_MS = 250;

export interface Counted {
  readonly phases: readonly Readonly<Record<Kind, Found>>[];
  /** Slices of the flood. */
  readonly slices: readonly Slice[];
}

interface Answer {
  readonly status: number;
  readonly ms: number;
  /** In milliseconds since the start. */
  readonly dueAt: number;
}

const isDone = (status: number): boolean => status >= 200 && status < 300;

export function createCounts(phases: number) {
  const empty = () => ({
    sent: 0,
    statuses: {} as Record<string, number>,
    done: [] as number[],
    refused: [] as number[],
  });
  const all = Array.from({ length: phases }, () => ({ flood: empty(), place: empty(), complete: empty() }));
  const slices: { done: number[]; refused: number }[] = [];
  const of = (kind: Kind, phase: number) => (all[phase] as (typeof all)[number])[kind];
  return {
    sent: (kind: Kind, phase: number) => void of(kind, phase).sent++,
    answered(kind: Kind, phase: number, { status, ms, dueAt }: Answer): void {
      const own = of(kind, phase);
      own.statuses[status] = (own.statuses[status] ?? 0) + 1;
      (isDone(status) ? own.done : own.refused).push(ms);
      if (kind !== "flood") return;
      const index = Math.max(0, Math.floor(dueAt / SLICE_MS));
      while (slices.length <= index) slices.push({ done: [], refused: 0 });
      const slice = slices[index] as (typeof slices)[number];
      if (isDone(status)) slice.done.push(ms);
      else slice.refused++;
    },
    result(): Counted {
      const found = ({ sent, statuses, done, refused }: ReturnType<typeof empty>): Found => ({
        sent,
        statuses,
        p50: percentile(done, 0.5),
        p99: percentile(done, 0.99),
        refusedP99: percentile(refused, 0.99),
      });
      return {
        phases: all.map(({ flood, place, complete }) => ({
          flood: found(flood),
          place: found(place),
          complete: found(complete),
        })),
        slices: slices.map(({ done, refused }) => ({ done: done.length, refused, p99: percentile(done, 0.99) })),
      };
    },
  };
}

/** 0 if there are no values: JSON has no NaN. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
