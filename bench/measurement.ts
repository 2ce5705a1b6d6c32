/** A measurement as the command line asks for it: its options, its help, and where its results go. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { command } from "./options.ts";

export interface Measurement<O extends string> {
  /** What the files of its results are called. */
  readonly name: string;
  readonly help: string;
  /** Its options beside --out and --help, each with what counts where it is left out. */
  readonly options: Readonly<Record<O, string>>;
  /** Whether words may stand there that belong to no option, such as the names of workloads. */
  readonly takesWords?: boolean;
  /** By default what follows the name of the measurement. */
  readonly args?: string[];
}

export interface Results {
  readonly json: string;
  /** In Markdown; it is printed, too. */
  readonly report: string;
  /** In SVG. */
  readonly chart?: string;
}

const textOr = (text: string) => ({ type: "string", default: text }) as const;

export const measurement = <O extends string>(
  { name, help, options, takesWords = false, args = process.argv.slice(3) }: Measurement<O>,
  measure: (values: Readonly<Record<O, string>>, words: readonly string[]) => Promise<Results>,
): Promise<void> =>
  command(async () => {
    const asked: ParseArgsOptionsConfig = {
      ...Object.fromEntries(Object.entries<string>(options).map(([option, text]) => [option, textOr(text)])),
      out: textOr(join(import.meta.dirname, "results")),
      help: { type: "boolean", default: false },
    };
    const { values, positionals } = parseArgs({ args, options: asked, allowPositionals: takesWords });
    if (values.help) return void process.stdout.write(help);
    const { json, report, chart } = await measure(values as Readonly<Record<O, string>>, positionals);
    const out = `${values.out}`;
    mkdirSync(out, { recursive: true });
    for (const [type, text] of Object.entries({ json: `${json}\n`, md: report, ...(chart && { svg: chart }) }))
      writeFileSync(join(out, `${name}.${type}`), text);
    process.stdout.write(report);
  });
