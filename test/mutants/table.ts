/** The table of docs/reliability.md that says what kills each mutant. */
import { type Guard, guarded } from "./guards.ts";
import type { Killed } from "./trial.ts";

export const PAGE = "docs/reliability.md";
const [BEGIN, END] = ["<!-- mutants -->\n", "<!-- /mutants -->"];
export const SURVIVED = "SURVIVED";
const UNTRIED = "not tried yet";
const MAX_LENGTH = 120;

/** The page with these outcomes. Those of mutants that were not tried stay; rows without a mutant go. */
export function withOutcomes(page: string, outcomes: ReadonlyMap<Guard["guard"], Killed | undefined>): string {
  const [begin, end] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)];
  if (begin < BEGIN.length || end < begin) throw new Error(`${PAGE} has no place for the table of mutants.`);
  const before = outcomesIn(page.slice(begin, end));
  const tables = guarded.map(({ file, mutants }) => {
    const rows = mutants.map((mutant) => {
      const { guard } = mutant;
      const [by, runs] = outcomes.has(guard) ? cellsOf(outcomes.get(guard)) : (before.get(guard) ?? [UNTRIED, ""]);
      return `| ${guard} | ${mutationOf(mutant)} | ${by} | ${runs} |`;
    });
    const head = `| [${file}](../${file}): what holds | mutant | killed by | after runs |`;
    return [head, "|---|---|---|--:|", ...rows].join("\n");
  });
  return `${page.slice(0, begin)}\n${tables.join("\n\n")}\n\n${page.slice(end)}`;
}

/** What is said of each guard in the table: by what its mutant is killed, and after how many runs. */
export function outcomesIn(text: string): Map<string, readonly [by: string, runs: string]> {
  const rows = text.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| ["));
  return new Map(
    rows.map((row) => {
      const [guard = "", , by = "", runs = ""] = row
        .split(/(?<!\\)\|/)
        .slice(1)
        .map((cell) => cell.trim());
      return [guard, [by, runs]];
    }),
  );
}

/** The part of the page with the table. */
export const tableIn = (page: string): string => page.slice(page.indexOf(BEGIN), page.indexOf(END));

function cellsOf(killed: Killed | undefined): readonly [string, string] {
  if (!killed) return [SURVIVED, ""];
  return [cell(killed.by), killed.runs === undefined ? "" : `${killed.runs}`];
}

const mutationOf = ({ find, put }: Pick<Guard, "find" | "put">): string =>
  put === "" ? `without ${code(find)}` : `${code(put)} for ${code(find)}`;

const code = (text: string) => `\`${cell(text)}\``;
function cell(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim().replaceAll("`", "'");
  const short = line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH)}…` : line;
  return short.replaceAll("|", "\\|");
}
