/**
 * The steps that a page gives its reader, in order. Blocks in `sh` have commands, blocks in `console` commands after "$" with
 * their output. A block in `text` below them has what the last lasting command prints later. A block with a name after its
 * language is a file that the reader saves under that name. In commands and output, "…" stands for what differs between runs.
 */

export type Step =
  | {
      readonly kind: "command";
      readonly command: string;
      /** The output, if some is shown. */
      readonly prints?: string;
    }
  | { readonly kind: "later"; readonly prints: string }
  | { readonly kind: "file"; readonly name: string; readonly content: string };

const isLasting = (step: Step) => step.kind === "command" && lastingOf(step.command) !== undefined;

/** `examples` are the texts of files that have their own tests: a block with one of them is no step. */
export function stepsOf(page: string, examples: ReadonlySet<string> = new Set()): readonly Step[] {
  const steps: Step[] = [];
  for (const [, language = "", name, text = ""] of page.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```/gms)) {
    if (examples.has(text)) continue;
    if (name !== undefined) steps.push({ kind: "file", name, content: text });
    else if (language === "sh") steps.push(...commandsOf(text));
    else if (language === "console") steps.push(...shownCommandsOf(text));
    else if (language === "text" && steps.some(isLasting)) steps.push({ kind: "later", prints: text.trimEnd() });
  }
  return steps;
}

/** Indented lines, and lines that end a loop or a list, belong to the command above. */
const commandsOf = (text: string): Step[] =>
  text
    .replaceAll(/^#.*/gm, "")
    .split(/^(?=[^\s})])(?!done\b|fi\b)/m)
    .map((command) => command.trim())
    .filter((command) => command !== "")
    .map((command) => ({ kind: "command", command }));

/** A command continues in lines that begin with ">". */
const shownCommandsOf = (text: string): Step[] =>
  text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [, command = "", prints = ""] = /^([^\n]*(?:\n> [^\n]*)*)\n?(.*)$/s.exec(part) ?? [];
      return { kind: "command", command: command.replaceAll("\n> ", "\n"), prints: prints.trimEnd() };
    });

/** The kind of a lasting command, which runs until it is stopped; undefined for one that ends by itself. */
export const lastingOf = (command: string): string | undefined =>
  /\bnpm start$|\bnpm run demo$|\bcurl -\w*N|&$/m.exec(command)?.[0];

/**
 * Whether a text matches what was shown: "…" on a line of its own is any number of lines, elsewhere anything within the line.
 */
export const isAsShown = (printed: string, shown: string): boolean => new RegExp(`^${patternOf(shown)}$`).test(printed);

/** Where the shown output ends in a growing text; undefined if it has not been printed yet. */
export function endOfShown(printed: string, shown: string): number | undefined {
  const found = new RegExp(`(?:^|\\n)${patternOf(shown)}(?=\\n|$)`).exec(printed);
  return found ? found.index + found[0].length : undefined;
}

const patternOf = (shown: string): string =>
  shown
    .split("\n")
    .map((line) => (line === "…" ? "(?:.*\\n)*?.*" : line.split("…").map(RegExp.escape).join(".*?")))
    .join("\n");

/**
 * The command with each "…" replaced by printed text: a word such as `psk_…` or `pageToken=…` becomes the last printed one
 * with the same beginning.
 * @throws Error when none was printed.
 */
export const filledIn = (command: string, printed: string): string =>
  command.replaceAll(/(\w+\W?)…/g, (_, beginning: string) => {
    const word = printed.match(new RegExp(`${RegExp.escape(beginning)}[^\\s'"<>&]*`, "g"))?.at(-1);
    if (word === undefined) throw new Error(`Nothing was printed that begins with ${beginning}`);
    return word;
  });
