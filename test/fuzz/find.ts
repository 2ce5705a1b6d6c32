/** What a fuzz run is after: something that no input may bring about. */

export class Find extends Error {
  override readonly name = "Find";
  /** What is wrong, in words that are the same however the case looks that shows it. */
  readonly problem: string;
  constructor(problem: string, detail = "") {
    super(detail === "" ? problem : `${problem}\n${detail}`);
    this.problem = problem;
  }
}

/** Throws a Find unless it holds. */
export function expectThat(holds: boolean, problem: string, detail?: string): void {
  if (!holds) throw new Find(problem, detail);
}
