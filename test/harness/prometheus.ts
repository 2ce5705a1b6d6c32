/** Prometheus and its promtool; `.ci/prometheus` fetches them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
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
  ask(what: string): Promise<unknown>;
}

/** Starts a Prometheus that reads `/metrics` of these targets, such as "127.0.0.1:8180", each second, and keeps exemplars. */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const data = await mkdtemp(join(tmpdir(), "prometheus-"));
  const [port] = await freePorts(1);
  const config = join(data, "prometheus.json"); // JSON is YAML
  const job = { job_name: "petstore", scrape_interval: "1s", static_configs: [{ targets }] };
  await writeFile(config, JSON.stringify({ scrape_configs: [job] }));
  const child = spawn(
    programs.prometheus,
    [
      `--config.file=${config}`,
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
  const ask = async (what: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${what}`);
    return ((await answer.json()) as { readonly data: unknown }).data;
  };
  while (
    await ask("query?query=up").then(
      () => false,
      () => true,
    )
  ) {
    if (child.exitCode !== null) throw new Error(`Prometheus did not start: ${await said}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    ask,
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
      process.off("exit", kill);
      await rm(data, { recursive: true, force: true });
    },
  };
}
