/** The distributions of the delays of writes and events as SVG. */
import { escaped } from "../report/svg.ts";
import type { WatchResults } from "./measure.ts";
import type { Quantiles } from "./quantiles.ts";
import { eventsOf, GOALS, isAlone, isWatched, titles, writesOf } from "./report.ts";

const [WIDTH, LEFT, RIGHT, PANEL, GAP, TOP] = [900, 60, 250, 230, 70, 40];
/** Colours that colour-blind people can tell apart (Okabe and Ito). */
const COLOURS = ["#56b4e9", "#0072b2", "#e69f00", "#009e73"];

export function watchChart({ stores, settings }: WatchResults): string {
  const panels = stores.map(({ store, turns }, i) => {
    const lines: [string, Quantiles][] = [
      ["a write, without watchers", writesOf(turns.filter(isAlone))],
      [`a write, with ${settings.watchers.toLocaleString("en")}`, writesOf(turns.filter(isWatched))],
      ["an event at a watcher", eventsOf(turns, "each")],
      ["an event at the last watcher", eventsOf(turns, "last")],
    ];
    return panel(TOP + i * (PANEL + GAP), titles[store], lines);
  });
  const height = TOP + stores.length * (PANEL + GAP);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">\n` +
    "<title>How long writes take with watchers and without, and events to reach them</title>\n" +
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>\n${panels.flat().join("\n")}\n</svg>\n`
  );
}

/** A panel with a logarithmic scale of time. */
function panel(top: number, title: string, lines: readonly [string, Quantiles][]): string[] {
  const highest = Math.max(GOALS.allMs, ...lines.flatMap(([, of]) => of));
  const decades = Math.ceil(Math.log10(highest));
  const y = (ms: number) => top + PANEL - (PANEL * Math.log10(Math.max(1, ms))) / decades;
  const x = (share: number) => LEFT + ((WIDTH - LEFT - RIGHT) * share) / 100;
  const right = WIDTH - RIGHT;
  const steps = Array.from({ length: decades + 1 }, (_, i) => 10 ** i);
  return [
    text(LEFT, top - 12, `${title}: milliseconds, by the share that took no longer`, 'font-weight="bold"'),
    ...steps.flatMap((ms) => [
      `<path d="M${LEFT} ${y(ms).toFixed(1)}H${right}" stroke="#dddddd"/>`,
      text(LEFT - 8, y(ms) + 4, ms.toLocaleString("en"), 'text-anchor="end"'),
    ]),
    ...[0, 25, 50, 75, 100].map((share) => text(x(share), top + PANEL + 18, `${share} %`, 'text-anchor="middle"')),
    `<path d="M${LEFT} ${y(GOALS.allMs).toFixed(1)}H${right}" stroke="#999999" stroke-dasharray="4 4"/>`,
    text(right + 10, y(GOALS.allMs) + 4, `goal: ${GOALS.allMs} ms for half of all events`, 'fill="#666666"'),
    ...lines.map(([, of], i) => {
      const points = of.map((ms, share) => `${x(share).toFixed(1)},${y(ms).toFixed(1)}`);
      return `<polyline points="${points.join(" ")}" fill="none" stroke="${COLOURS[i]}" stroke-width="2"/>`;
    }),
    ...lines.map(([name], i) => text(right + 10, top + PANEL - 60 + 18 * i, name, `fill="${COLOURS[i]}"`)),
  ];
}

const text = (x: number, y: number, content: string, attributes = ""): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}"${attributes && ` ${attributes}`}>${escaped(content)}</text>`;
