/** A find of a fuzz run: something that no input may cause. */

export class Find extends Error {
  override readonly name = "Find";
  /** What is wrong, in words that do not depend on the case. */
  readonly problem: string;
  constructor(problem: string, detail = "") {
    super(detail === "" ? problem : `${problem}\n${detail}`);
    this.problem = problem;
  }
}

/** Throws a Find unless `holds`. */
export function expectThat(holds: boolean, problem: string, detail?: string): void {
  if (!holds) throw new Find(problem, detail);
}

/** The name of an error and where it was thrown, without its message, which may quote the case. */
export function kindOf({
  name,
  stack = "",
}: {
  readonly name?: string | undefined;
  readonly stack?: string | undefined;
}): string {
  const [, place] = /^\s+at (?:async )?([\w.#<>$ ]+) \(/m.exec(stack) ?? [];
  // For a RangeError, such as a stack overflow, the place is arbitrary.
  return place === undefined || name === "RangeError" ? `${name}` : `${name} in ${place}`;
}
