/** Counts the steps of a function instead of measuring its time: the number is the same on any machine. */
import { Session } from "node:inspector";

/**
 * Adds up two numbers: how often blocks of code ran, as V8 counts it for coverage, and the lengths of the texts and lists that
 * built-in functions may walk. The work of regular expressions is not counted; their form is checked elsewhere.
 */
export function countSteps(run: () => unknown): number {
  take(); // discards the counts so far
  const walked = countingWalks(run);
  const ranges = take()
    .filter(({ url }) => !/vitest|\/test\/attacks\/step-counter\.ts$/.test(url))
    .flatMap(({ functions }) => functions.flatMap((one) => one.ranges));
  return walked + ranges.reduce((sum, { count }) => sum + count, 0);
}

let session: Session | undefined;

/** The counts since the last call. Counting is never switched off again, because that would recompile all code. */
function take(): Coverage["result"] {
  if (!session) {
    session = new Session();
    session.connect();
    session.post("Profiler.enable");
    session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }
  let coverage: Coverage = { result: [] };
  // For the session's own thread the answer comes before the call returns.
  session.post("Profiler.takePreciseCoverage", (error, answer) => {
    if (error) throw error;
    coverage = answer;
  });
  return coverage.result;
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
  }[];
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * Built-in methods that may walk the text or list that they are called on; the functions below may walk their first argument.
 */
const walkers: readonly (readonly [owner: object, names: string])[] = [
  [String.prototype, "includes indexOf isWellFormed lastIndexOf match matchAll normalize padEnd padStart replace"],
  [String.prototype, "replaceAll search split toLowerCase toUpperCase toWellFormed trim trimEnd trimStart"],
  [Array.prototype, "concat every filter find findIndex flat flatMap forEach includes indexOf join lastIndexOf map"],
  [Array.prototype, "reduce reverse shift some sort splice toSorted unshift"],
];
const readers: readonly (readonly [owner: object, names: string])[] = [
  [JSON, "parse"],
  [globalThis, "BigInt Number decodeURI decodeURIComponent encodeURIComponent"],
  [Buffer, "from"],
  [TextDecoder.prototype, "decode"],
];

function lengthOf(value: unknown): number {
  const length = (value as { length?: unknown } | null | undefined)?.length;
  return typeof length === "number" ? length : 0;
}

/** Replaces built-in functions, while `run` runs, by ones that add up what they walk. */
function countingWalks(run: () => unknown): number {
  let walked = 0;
  const undo: (() => void)[] = [];
  const replace = (owner: object, name: string, counting: (original: Method) => Method) => {
    const before = Object.getOwnPropertyDescriptor(owner, name) as PropertyDescriptor;
    const original = before.value as Method;
    // Static functions such as Number.isFinite remain.
    const replaced = Object.setPrototypeOf(counting(original), original) as Method;
    Object.defineProperty(owner, name, { ...before, value: replaced });
    undo.push(() => Object.defineProperty(owner, name, before));
  };
  const count = (functions: typeof walkers, walkedBy: (self: unknown, first: unknown) => unknown) => {
    for (const [owner, names] of functions)
      for (const name of names.split(" "))
        replace(
          owner,
          name,
          (original) =>
            function (...args) {
              walked += lengthOf(walkedBy(this, args[0]));
              return Reflect.apply(original, this, args);
            },
        );
  };
  count(walkers, (self) => self);
  count(readers, (_, first) => first);
  replace(
    RegExp.prototype,
    "exec",
    (original) =>
      function (...args) {
        const { sticky, global, lastIndex } = this as RegExp;
        const from = sticky || global ? lastIndex : 0;
        const found = Reflect.apply(original, this, args) as RegExpExecArray | null;
        walked += (found ? found.index + found[0].length : sticky ? from : lengthOf(args[0])) - from;
        return found;
      },
  );
  walked = 0;
  try {
    run();
  } finally {
    for (const one of undo.reverse()) one();
  }
  return walked;
}
