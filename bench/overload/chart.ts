/** Overload over time as SVG: answers and refusals per second, and the p99 of the answers. */
import { escaped } from "../report/svg.ts";
import { SLICE_MS, type Slice } from "./counts.ts";
import type { OverloadResults } from "./measure.ts";

const [WIDTH, LEFT, RIGHT, PANEL, GAP, TOP] = [900, 70, 20, 170, 50, 40];
const COLOURS = { answered: "#0072b2", refused: "#e69f00", p99: "#009e73" };

export function overloadChart(results: OverloadResults): string {
  const { slices, shares, settings, peak } = results;
  const perSecond = (n: number) => (n * 1000) / SLICE_MS;
  const length = shares.length * settings.seconds * 1000;
  const all = slices.slice(0, Math.round(length / SLICE_MS));
  const x = (atMs: number) => LEFT + ((WIDTH - LEFT - RIGHT) * atMs) / length;
  const calm = results.phases[0]?.flood.p99 ?? 0;

  function panel(top: number, title: string, most: number, lines: [keyof typeof COLOURS, (one: Slice) => number][]) {
    const y = (value: number) => top + PANEL - (PANEL * Math.min(value, most)) / most;
    const drawn = lines.map(([name, of]) => {
      const points = all.map((one, i) => `${x((i + 0.5) * SLICE_MS).toFixed(1)},${y(of(one)).toFixed(1)}`);
      return `<polyline points="${points.join(" ")}" fill="none" stroke="${COLOURS[name]}" stroke-width="1.5"/>`;
    });
    const names = lines.map(([name], i) => text(LEFT + 420 + 110 * i, top - 8, name, `fill="${COLOURS[name]}"`));
    const scale = [0, most / 2, most].map((value) => text(LEFT - 8, y(value) + 4, count(value), 'text-anchor="end"'));
    const frame = `<path d="M${LEFT} ${top}V${top + PANEL}H${WIDTH - RIGHT}" fill="none" stroke="#222222"/>`;
    return { y, svg: [text(LEFT, top - 8, title, 'font-weight="bold"'), frame, ...scale, ...drawn, ...names] };
  }

  const answers = panel(
    TOP,
    `${results.workload}: requests per second`,
    Math.max(...all.map(({ done, refused }) => perSecond(Math.max(done, refused))), peak),
    [
      ["refused", ({ refused }) => perSecond(refused)],
      ["answered", ({ done }) => perSecond(done)],
    ],
  );
  const delays = panel(TOP + PANEL + GAP, "p99 of what was answered, ms", Math.max(6 * calm, 1), [
    ["p99", ({ p99 }) => p99],
  ]);
  const height = TOP + 2 * (PANEL + GAP);
  const level = (value: number, what: string) =>
    `<path d="M${LEFT} ${value.toFixed(1)}H${WIDTH - RIGHT}" stroke="#999999" stroke-dasharray="4 4"/>` +
    text(WIDTH - RIGHT, value - 4, what, 'text-anchor="end" fill="#666666"');
  const phases = shares.flatMap((share, i) => {
    const from = x(i * settings.seconds * 1000);
    const border = i === 0 ? [] : [`<path d="M${from.toFixed(1)} ${TOP}V${height - GAP}" stroke="#dddddd"/>`];
    return [...border, text(from + 6, height - GAP + 18, `${share}x`)];
  });
  const parts = [
    ...phases,
    ...answers.svg,
    level(answers.y(peak), "peak"),
    ...delays.svg,
    level(delays.y(3 * calm), "three times that at half the peak"),
  ];
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">\n` +
    "<title>What was answered and refused, and how long it took, at 0.5 to 10 times the peak</title>\n" +
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>\n${parts.join("\n")}\n</svg>\n`
  );
}

const count = (value: number): string => Math.round(value).toLocaleString("en");
const text = (x: number, y: number, content: string, attributes = ""): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}"${attributes && ` ${attributes}`}>${escaped(content)}</text>`;
