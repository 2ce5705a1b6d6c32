/** The comparison as an SVG chart: a group of bars for each workload, with a bar for each peer. */
import { type Cell, cellsOf, type Measure, measures, type Results, samplesOf, spread } from "../compare/results.ts";
import { escaped } from "./svg.ts";

/** Colours that colour-blind people can tell apart (Okabe and Ito). */
const COLOURS = ["#0072b2", "#e69f00", "#56b4e9", "#009e73", "#66c2a5", "#cc79a7", "#f0e442", "#999999", "#dddddd"];
const PANELS: readonly { readonly measure: Measure; readonly title: string }[] = [
  { measure: "rate", title: "requests per second: more is better" },
  { measure: "cpu", title: "CPU of the servers for one request, µs: less is better" },
];

const [WIDTH, LABEL, NUMBER, BAR, GAP, LINE] = [900, 130, 70, 14, 14, 20];

/** The highest number of connections of each workload, where the peers differ most. */
export function chartedCells(results: Results): Cell[] {
  const most = new Map<string, Cell>();
  for (const cell of cellsOf(results)) {
    if (cell.connections > (most.get(cell.workload)?.connections ?? 0)) most.set(cell.workload, cell);
  }
  return [...most.values()];
}

export function chart(results: Results): string {
  const parts: string[] = [];
  let y = GAP;
  for (const [i, { title }] of results.peers.entries()) {
    parts.push(
      `<rect x="${GAP}" y="${y}" width="12" height="12" fill="${COLOURS[i % COLOURS.length]}"/>`,
      text(GAP + 20, y + 11, title),
    );
    y += LINE;
  }
  for (const { measure, title } of PANELS) {
    y += LINE;
    parts.push(text(GAP, y, title, 'font-weight="bold"'));
    y += GAP;
    for (const cell of chartedCells(results)) {
      const drawn = group(results, cell, measure, y);
      parts.push(drawn.svg);
      y += drawn.height + GAP;
    }
  }
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="sans-serif" font-size="12">\n` +
    "<title>Rates and processor time of the petstore and its peers, by workload</title>\n" +
    `<rect width="${WIDTH}" height="${y}" fill="#ffffff"/>\n${parts.join("\n")}\n</svg>\n`
  );
}

/** Each group has its own scale: the groups' values differ too much for a common one. */
function group(results: Results, cell: Cell, measure: Measure, top: number) {
  const bars = results.peers.flatMap(({ name }, i) => {
    const samples = samplesOf(results, name, cell);
    return samples.length === 0
      ? []
      : [{ value: spread(samples.map(measures[measure])).median, colour: COLOURS[i % COLOURS.length] }];
  });
  const longest = Math.max(...bars.map(({ value }) => value));
  const svg = bars.map(({ value, colour }, i) => {
    const y = top + i * (BAR + 2);
    const width = ((WIDTH - LABEL - NUMBER - GAP) * value) / longest;
    const number = Math.round(value).toLocaleString("en");
    return (
      `<rect x="${LABEL}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${colour}"/>` +
      text(LABEL + width + 6, y + 11, number)
    );
  });
  const height = bars.length * (BAR + 2);
  const label = text(GAP, top + height / 2 + 4, `${cell.workload}, ${cell.connections}`);
  return { svg: [label, ...svg].join("\n"), height };
}

const text = (x: number, y: number, content: string, attributes = ""): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="#222222"${attributes && ` ${attributes}`}>${escaped(content)}</text>`;
