/** Prometheus and its promtool; `.ci/prometheus` fetches them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "./mongod.ts";
import { isExecutable } from "./programs.ts";

const dir = process.env.PROMETHEUS ?? join(import.meta.dirname, "../../node_modules/.cache/prometheus/usr/bin");
const programs = { promtool: join(dir, "promtool"), prometheus: join(dir, "prometheus") };

/** For `test.skipIf(...)`: the reporter mentions it, and with CI=true the run fails before it starts. */
export const prometheusMissing = !Object.values(programs).every(isExecutable);

/** Resolves to what promtool says, and whether it is content. */
export async function promtool(args: readonly string[], input = ""): Promise<{ isGood: boolean; output: string }> {
  const child = spawn(programs.promtool, args, { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(input);
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { isGood: code === 0, output: out + err };
}

export interface Prometheus extends AsyncDisposable {
  /** Asks its HTTP API, such as "query?query=up". Resolves to the member `data` of the answer. */
  ask<T>(what: string): Promise<T>;
  /** How many series an expression has now. */
  count(expression: string): Promise<number>;
  /** The alerts that fire, such as "PetstoreDown". */
  firing(): Promise<readonly string[]>;
  /** What is wrong with rules, by the last time that they were looked at. */
  ruleErrors(): Promise<readonly string[]>;
}

/**
 * Starts a Prometheus that reads `/metrics` of these targets, such as "127.0.0.1:8180", each second, and keeps exemplars.
 * `rules` are the contents of a file of rules.
 */
export async function startPrometheus(targets: readonly string[], rules: object = {}): Promise<Prometheus> {
  const data = await mkdtemp(join(tmpdir(), "prometheus-"));
  const [port] = await freePorts(1);
  // JSON is YAML.
  const write = (name: string, content: object) => writeFile(join(data, name), JSON.stringify(content));
  await write("rules.json", rules);
  await write("prometheus.json", {
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: ["rules.json"],
    scrape_configs: [{ job_name: "petstore", static_configs: [{ targets }] }],
  });
  const child = spawn(
    programs.prometheus,
    [
      `--config.file=${join(data, "prometheus.json")}`,
      `--storage.tsdb.path=${join(data, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--enable-feature=exemplar-storage",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = once(child, "close");
  const said = text(child.stderr);
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const get = (path: string) => fetch(`http://127.0.0.1:${port}/${path}`);
  const ask = async <T>(what: string): Promise<T> => ((await (await get(`api/v1/${what}`)).json()) as { data: T }).data;
  while (!(await get("-/ready").catch(() => undefined))?.ok) {
    if (child.exitCode !== null) throw new Error(`Prometheus did not start: ${await said}`);
    await sleep(100);
  }
  return {
    ask,
    count: async (expression) =>
      (await ask<{ result: readonly unknown[] }>(`query?query=${encodeURIComponent(expression)}`)).result.length,
    async firing() {
      const { alerts } = await ask<{ alerts: readonly { state: string; labels: { alertname: string } }[] }>("alerts");
      return alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname);
    },
    async ruleErrors() {
      const { groups } = await ask<{ groups: readonly { rules: readonly { lastError?: string }[] }[] }>("rules");
      return groups.flatMap(({ rules }) => rules.flatMap(({ lastError }) => lastError ?? []));
    },
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
      process.off("exit", kill);
      await rm(data, { recursive: true, force: true });
    },
  };
}
