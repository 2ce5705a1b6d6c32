/** Runs a measurement from the command line: reads its options, prints its help or its report, and writes its results. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { command } from "./options.ts";

export interface Measurement<O extends string> {
  /** The name of the result files, without an extension. */
  readonly name: string;
  readonly help: string;
  /** The options besides --out and --help, with their defaults. */
  readonly options: Readonly<Record<O, string>>;
  /** Whether it accepts arguments that belong to no option, such as names of workloads. */
  readonly takesWords?: boolean;
  /** By default the arguments after the name of the measurement. */
  readonly args?: string[];
}

export interface Results {
  readonly json: string;
  /** Markdown. It is also printed. */
  readonly report: string;
  /** SVG. */
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
