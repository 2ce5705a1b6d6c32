/** `npm run -s dashboards -- DIR`: writes the dashboards for Grafana. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { dashboards } from "./dashboards.ts";

const help = `npm run -s dashboards -- DIR     writes two dashboards for Grafana into a directory

Import the files in Grafana by Dashboards > New > Import, or put them where Grafana is provisioned from. Above the
panels, choose the Prometheus that scrapes the petstore, by a job of the name petstore. The dashboards are made of
the metrics that the processes declare.
`;

try {
  const { positionals, values } = parseArgs({ options: { help: { type: "boolean" } }, allowPositionals: true });
  const [dir, ...more] = positionals;
  if (values.help) process.stdout.write(help);
  else if (dir === undefined || more.length > 0) throw new Error(`Say one directory:\n${help}`);
  else {
    mkdirSync(dir, { recursive: true });
    for (const [name, dashboard] of dashboards()) {
      writeFileSync(join(dir, name), `${JSON.stringify(dashboard, null, 2)}\n`);
      process.stdout.write(`${join(dir, name)}\n`);
    }
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 2;
}
