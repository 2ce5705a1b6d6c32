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

/** What an error is and where it was thrown, without its words: they may quote the case. */
export function kindOf({
  name,
  stack = "",
}: {
  readonly name?: string | undefined;
  readonly stack?: string | undefined;
}): string {
  const [, place] = /^\s+at (?:async )?([\w.#<>$ ]+) \(/m.exec(stack) ?? [];
  // The stack ends anywhere.
  return place === undefined || name === "RangeError" ? `${name}` : `${name} in ${place}`;
}
