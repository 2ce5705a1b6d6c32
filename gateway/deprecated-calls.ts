/** Who still calls deprecated operations: `GET /deprecated` at the admin port, which `npm run deprecated` asks. */
import { type DeprecationPolicy, effectiveDates, type Operation } from "connect-transcoder";

/** One caller of one operation. */
export interface DeprecatedCall {
  /** Such as "GET /pets/{petId}". */
  readonly operation: string;
  readonly sunset: Date;
  /** What to call instead, as the contract has it, such as "/pets?id={pet_id}"; empty where there is nothing. */
  readonly successor: string;
  readonly caller: string;
  calls: number;
  last: Date;
}

export type DeprecatedCalls = ReturnType<typeof createDeprecatedCalls>;

/** Counts from now on. Beyond `most` rows the caller who has been away longest makes room for another. */
export function createDeprecatedCalls(policy: DeprecationPolicy, wallClock: () => number, most = 1000) {
  /** In the order of their last calls. */
  const rows = new Map<string, DeprecatedCall>();
  /** Calls of callers who made room. */
  let forgotten = 0;
  const since = new Date(wallClock());

  function begin({ verb, path, deprecation }: Operation, caller: string): DeprecatedCall {
    if (!deprecation) throw new Error(`${verb} ${path} is not deprecated`);
    const { sunsetAt: sunset } = effectiveDates(deprecation, policy);
    const { successorTemplate: successor } = deprecation;
    return { operation: `${verb} ${path}`, sunset, successor, caller, calls: 0, last: since };
  }

  function makeRoom(): void {
    for (const [key, { calls }] of rows) {
      if (rows.size <= most) return;
      rows.delete(key);
      forgotten += calls;
    }
  }

  return {
    count(operation: Operation, caller: string): void {
      const key = `${operation.id} ${caller}`;
      const row = rows.get(key) ?? begin(operation, caller);
      row.calls++;
      row.last = new Date(wallClock());
      rows.delete(key);
      rows.set(key, row);
      makeRoom();
    },
    report: () => ({ since, calls: [...rows.values()], forgotten }),
  };
}
