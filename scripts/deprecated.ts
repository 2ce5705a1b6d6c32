/** `npm run -s deprecated`: who still calls deprecated operations, as the gateways' admin ports tell it. */
import { parseArgs } from "node:util";
import { readEnvironment } from "@petstore/runtime/environment";
import type { DeprecatedCall } from "../gateway/deprecated-calls.ts";
import { processSettings } from "../processes/config.ts";
import { adminUrlOf, replicasOf } from "../processes/names.ts";

const help = `npm run -s deprecated -- [options]     who still calls operations that are deprecated

Asks every gateway of this machine at its admin port: where PORT_BASE, REPLICAS, ADMIN_HOST and ADMIN_PORT
say that it is. Each counts from its start, and keeps the latest 1,000 callers.

options
  --admin URL   a gateway's admin port instead, such as http://127.0.0.1:8180; give it for each gateway
  --json        for programs
  --help

Ends with 0 when all gateways answered, and with 2 when one could not be asked.
`;

const options = {
  admin: { type: "string", multiple: true },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** How long a gateway may take, in milliseconds. */
const PATIENCE_MS = 5_000;

/** What a gateway answers, in JSON: moments as text, whose order is that of time. */
interface Report {
  readonly since: string;
  readonly calls: readonly (Omit<DeprecatedCall, "sunset" | "last"> & Record<"sunset" | "last", string>)[];
  readonly forgotten: number;
}

try {
  await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}

async function run(): Promise<void> {
  const { values } = parseArgs({ options });
  if (values.help) return void process.stdout.write(help);
  const admins = values.admin ?? adminPorts();
  const report = together(await Promise.all(admins.map(ask)));
  if (values.json) return console.log(JSON.stringify(report));
  const { since, calls, forgotten } = report;
  for (const [operation, rows = []] of Object.entries(Object.groupBy(calls, (row) => row.operation))) {
    const { sunset = "", successor } = rows[0] ?? {};
    console.log(`${operation}, sunset ${sunset}${successor && `, successor ${successor}`}`);
    for (const { caller, calls, last } of rows)
      console.log(`  ${calls === 1 ? "1 call" : `${calls} calls`} by ${caller}, the last at ${last}`);
  }
  if (calls.length === 0) console.log("Nobody has called a deprecated operation.");
  if (forgotten > 0)
    console.log(`${forgotten} calls by others are not listed: a gateway keeps the latest 1,000 callers.`);
  const asked = admins.length === 1 ? "1 gateway" : `${admins.length} gateways`;
  console.log(`Asked: ${asked}. Counted since ${since}.`);
}

/** Where the gateways' admin ports are by the environment, as it is read by `npm start`. */
function adminPorts(): readonly string[] {
  const ports = readEnvironment(process.env, processSettings);
  const { ADMIN_PORT, REPLICAS } = ports;
  if (ADMIN_PORT === "off" || ADMIN_PORT === 0)
    throw new Error(`ADMIN_PORT=${ADMIN_PORT} does not say where a gateway can be asked: say it with --admin URL.`);
  return Array.from({ length: replicasOf(REPLICAS, "gateway") }, (_, i) => adminUrlOf("gateway", ports, i + 1));
}

async function ask(admin: string): Promise<Report> {
  const url = `${admin.replace(/\/$/, "")}/deprecated`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch((error) => {
    const why = error.cause?.code ?? error.message;
    throw new Error(`${url} can't be asked (${why}): is the petstore running? PORT_BASE or --admin say where it is.`);
  });
  if (answer.ok) return (await answer.json()) as Report;
  throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
}

/** Adds up what several gateways have of one caller. */
function together(reports: readonly Report[]): Report {
  const rows = new Map<string, Report["calls"][number]>();
  for (const row of reports.flatMap(({ calls }) => calls)) {
    const key = `${row.operation} ${row.caller}`;
    const { calls, last } = rows.get(key) ?? { calls: 0, last: "" };
    rows.set(key, { ...row, calls: calls + row.calls, last: latest([last, row.last]) });
  }
  return {
    since: latest(reports.map(({ since }) => since)),
    calls: [...rows.values()].sort((a, b) => b.calls - a.calls),
    forgotten: reports.reduce((sum, { forgotten }) => sum + forgotten, 0),
  };
}

function latest(moments: readonly string[]): string {
  return moments.toSorted().at(-1) ?? "";
}
