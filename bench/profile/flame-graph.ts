/** Draws a flame graph (https://www.brendangregg.com/flamegraphs.html) as one self-contained SVG. Pure. */
import { escaped } from "../report/svg.ts";
import type { Call } from "./cpu-profile.ts";

const WIDTH = 1800;
const ROW = 16;
/** Narrower calls are left out: they would be too thin to point at. */
const LEAST_WIDTH = 0.5;
/** Width of a letter, in the font and size below. */
const LETTER = 6.3;

/** Colours by the code's origin: ours, packages, Node, and the rest. */
const colourOf = (place: string) =>
  place.includes("node_modules/") ? "#f3c57b" : place.startsWith("node:") ? "#a9cfe8" : place ? "#f08a5d" : "#d5d5d5";

/** Draws the root at the top. The width of a call is its total time; its title has the numbers. */
export function flameGraph(root: Call, title: string): string {
  const scale = WIDTH / root.total;
  const boxes: string[] = [];
  let depths = 0;
  const draw = (call: Call, x: number, depth: number): void => {
    const width = call.total * scale;
    if (width < LEAST_WIDTH) return;
    depths = Math.max(depths, depth + 1);
    const share = (micros: number) => `${((100 * micros) / root.total).toFixed(1)} %`;
    const about = escaped(`${call.name} ${call.place}\n${share(call.total)}, ${share(call.self)} by itself`);
    const label = escaped(call.name.slice(0, Math.floor((width - 4) / LETTER)));
    const [at, y] = [x.toFixed(1), (depth + 2) * ROW];
    boxes.push(
      `<g><title>${about}</title><rect x="${at}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" ` +
        `fill="${colourOf(call.place)}"/>${label && `<text x="${(x + 2).toFixed(1)}" y="${y + 11}">${label}</text>`}</g>`,
    );
    let next = x;
    for (const inner of call.calls.toSorted((a, b) => b.total - a.total)) {
      draw(inner, next, depth + 1);
      next += inner.total * scale;
    }
  };
  draw(root, 0, 0);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${(depths + 3) * ROW}" font-family="monospace" font-size="10.5">`,
    `<text x="2" y="20" font-size="14">${escaped(title)}</text>`,
    ...boxes,
    "</svg>\n",
  ].join("\n");
}
