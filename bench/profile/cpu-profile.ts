/** Evaluates V8's CPU profiles. Pure. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

/** As `node --cpu-prof` writes it. Times are microseconds of the machine's monotonic clock. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/**
 * A function as called from one caller. `self` is the time of the function itself, `total` includes its calls; microseconds.
 */
export interface Call {
  readonly name: string;
  /** The file, relative to the project, with the line; empty for what is not JavaScript. */
  readonly place: string;
  readonly calls: readonly Call[];
  readonly self: number;
  readonly total: number;
}

const NO_WORK = new Set(["(idle)", "(program)"]);

/** The calls of a profile between two moments, from the root. Time outside of JavaScript and garbage collection is left out. */
export function callsBetween(profile: CpuProfile, from: number, to: number, project: string): Call {
  const selfs = new Map<number, number>();
  let now = profile.startTime;
  for (const [i, id] of profile.samples.entries()) {
    const micros = profile.timeDeltas[i] ?? 0;
    now += micros;
    if (now >= from && now <= to) selfs.set(id, (selfs.get(id) ?? 0) + Math.max(0, micros));
  }
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const callOf = (id: number): Call => {
    const { callFrame, children = [] } = nodes.get(id) as CpuProfile["nodes"][number];
    const calls = children.map(callOf).filter(({ name, total }) => total > 0 && !NO_WORK.has(name));
    const self = selfs.get(id) ?? 0;
    const total = calls.reduce((sum, call) => sum + call.total, self);
    return { name: callFrame.functionName || "(anonymous)", place: placeOf(callFrame, project), calls, self, total };
  };
  return callOf(profile.nodes[0]?.id ?? 0);
}

function placeOf({ url, lineNumber }: CpuProfile["nodes"][number]["callFrame"], project: string): string {
  if (url === "") return "";
  const path = url.startsWith("file:") ? relative(project, fileURLToPath(url)) : url;
  return `${path}:${lineNumber + 1}`;
}

export interface Cost {
  readonly what: string;
  /** Of all work, in [0, 1]. */
  readonly share: number;
}

/** The most expensive functions by their own time, grouped by `nameOf`. */
export function topCosts(root: Call, count: number, nameOf: (call: Call) => string): Cost[] {
  const sums = new Map<string, number>();
  const add = (call: Call): void => {
    const what = nameOf(call);
    sums.set(what, (sums.get(what) ?? 0) + call.self);
    call.calls.forEach(add);
  };
  add(root);
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([what, micros]) => ({ what, share: micros / root.total }));
}

export const functionOf = ({ name, place }: Call): string => `${name} ${place}`.trim();

/** The package, one of Node's modules, or a file of the project. */
export function partOf({ name, place }: Call): string {
  const installed = /(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(place)?.[1];
  return installed ?? (place === "" ? name : place.replace(/:\d+$/, ""));
}
