/** `npx connect-transcoder`: an existing gRPC or Connect service as HTTP/JSON. */
import { hostAndPort } from "@petstore/rpc/http/address";
import { ConfigError } from "@petstore/runtime/environment";
import { collectAfterStart } from "@petstore/runtime/garbage";
import { pino } from "pino";
import manifest from "../package.json" with { type: "json" };
import type { Contract } from "../source/contract.ts";
import { watchContract } from "../source/watch.ts";
import { openAdmin, type Phase } from "./admin.ts";
import { readFlags, type Settings, UsageError } from "./flags.ts";
import { openGateway } from "./gateway.ts";
import { openGeneration } from "./generation.ts";
import { HELP } from "./help.ts";
import { asJson, asText, obstacle, reportOn } from "./report.ts";
import { contractReader, ensureReachable, transportsOf } from "./source.ts";
import { openTelemetry } from "./telemetry.ts";

/** How often `--watch` looks, in milliseconds. */
const WATCH_MS = 2000;

const say = (text: string): void => void process.stdout.write(text);

async function run(args: readonly string[]): Promise<number> {
  const settings = readFlags(args);
  if (settings === "help") say(HELP);
  else if (settings === "version") say(`${manifest.version}\n`);
  else if (settings.check) return check(settings, await contractReader(settings)());
  else return serve(settings);
  return 0;
}

function check(settings: Settings, { services }: Contract): number {
  const report = reportOn(services, settings.library);
  say(settings.json ? asJson(report) : asText(report));
  return obstacle(services, report, settings.strict) === undefined ? 0 : 1;
}

async function serve(settings: Settings): Promise<number> {
  const log = pino({ level: "warn" });
  const scheme = settings.tls ? "https" : "http";
  const isRead = settings.admin !== undefined;
  const telemetry = await openTelemetry({ environment: process.env, scheme, isRead, log });
  let phase: Phase = "starting";
  const isDraining = () => phase === "draining";
  const admin = await openAdmin({ ...settings, metrics: telemetry.text, phase: () => phase });
  const read = contractReader(settings);
  const contract = await read();
  const transportOf = transportsOf(settings, telemetry.called);

  const open = async ({ services }: Contract) => {
    const report = reportOn(services, settings.library);
    const problem = obstacle(services, report, settings.strict);
    if (problem !== undefined) throw new Error(problem);
    const served = new Set(report.operations.map(({ service }) => service));
    const reached = services.flatMap((desc) => {
      const transport = transportOf(desc);
      if (!transport && served.has(desc))
        throw new Error(
          `No target is for ${desc.typeName}: add --target ${desc.typeName}=URL, or one for all, --target URL.`,
        );
      return transport ? { desc, transport } : [];
    });
    return openGeneration({ settings, services: reached, report, telemetry, log, isDraining });
  };
  const first = await open(contract);
  await ensureReachable(settings);
  const gateway = await openGateway(settings, telemetry, first);
  phase = "serving";
  // Heard from before it says that it serves: who reads that may stop it at once.
  const told = signal();
  collectAfterStart();
  const url = `${scheme}://${hostAndPort(settings.host, gateway.port)}`;
  say(`Serving ${first.served} at ${url} (/docs, /openapi.json)\n`);
  if (admin) say(`The admin port is ${admin.url} (/metrics, /readyz)\n`);

  const stop = new AbortController();
  const watching = settings.watch
    ? watchContract({
        read,
        fingerprint: contract.fingerprint,
        everyMs: WATCH_MS,
        signal: stop.signal,
        onChange: async (changed) => {
          const next = await open(changed);
          gateway.serve(next);
          say(`The contract has changed. Serving ${next.served}\n`);
        },
        onProblem: ({ message }) => log.error(`the contract of before goes on being served: ${message}`),
      })
    : undefined;
  await told;
  phase = "draining";
  stop.abort();
  await Promise.all([gateway.close(), watching]);
  await telemetry.close();
  admin?.close();
  say("Stopped\n");
  return 0;
}

/** Resolves with the first signal to stop. A second one ends the process at once. */
function signal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let count = 0;
  for (const name of ["SIGTERM", "SIGINT"] as const)
    process.on(name, () => {
      if (count++ > 0) process.exit(1);
      resolve();
    });
  return promise;
}

try {
  const code = await run(process.argv.slice(2));
  // Connections to services would keep the process.
  process.stdout.write("", () => process.exit(code));
} catch (error) {
  const isUsage = error instanceof UsageError;
  process.stderr.write(`connect-transcoder: ${(error as Error).message}\n`);
  if (isUsage) process.stderr.write("connect-transcoder --help shows all flags.\n");
  process.exit(isUsage || error instanceof ConfigError ? 2 : 1);
}
