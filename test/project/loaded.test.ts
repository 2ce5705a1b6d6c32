/** What a start does not load. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "@petstore/runtime/environment";
import { type Command, LAUNCHED, type Report } from "@petstore/runtime/lifecycle";
import { expect, test } from "vitest";
import { freePorts } from "../harness/instances.ts";
import { SECRET } from "../harness/processes.ts";

/** When it is told to stop, for the stop itself loads more. */
const PRINT = `import { writeSync } from "node:fs";
  import { getCompileCacheDir } from "node:module";
  process.once("message", () => writeSync(1, "\\nloaded " + JSON.stringify([getCompileCacheDir(), process.moduleLoadList]) + "\\n"));`;

/** The files and the modules of Node's own that a process has loaded when it says that it is ready, or what it waits for. */
async function loadedBy(program: string[], says: Report["type"] = "ready", env: Environment = {}) {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "loaded-"));
  stack.defer(() => rm(dir, { recursive: true }));
  const child = spawn(process.execPath, ["--import", `data:text/javascript,${encodeURIComponent(PRINT)}`, ...program], {
    cwd: join(import.meta.dirname, "../.."),
    env: {
      NODE_V8_COVERAGE: join(dir, "coverage"),
      DATA_DIR: dir,
      INTERNAL_SECRET: SECRET,
      PORT: "0",
      [LAUNCHED]: "1",
      ...env,
    },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  stack.defer(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text) => (output += text));
  const ended = once(child, "close");
  expect(await once(child, "message")).toMatchObject([{ type: says }, undefined]);
  child.send({ type: "stop" } satisfies Command);
  await ended;
  const files = await filesIn(join(dir, "coverage"));
  return { files, builtins: /^loaded (.*)$/m.exec(output)?.[1] ?? "" };
}

/** The files that a process has loaded, whose coverage is reported in this directory: V8 lists all of them there. */
async function filesIn(dir: string): Promise<string[]> {
  const [report = ""] = await readdir(dir);
  const coverage = JSON.parse(await readFile(join(dir, report), "utf8"));
  return (coverage.result as { url: string }[]).map(({ url }) => url);
}

test.each([
  ["the gateway", ["gateway/main.ts"]],
  ["a service", ["services/main.ts", "pet"]],
])("%s loads nothing that it does not need", { timeout: 120_000 }, async (_, program) => {
  const { files, builtins } = await loadedBy(program);
  expect(files.filter((url) => url.includes("/sqlite/sqlite.ts"))).toHaveLength(program.length - 1);
  // What only MongoDB, a terminal, credentials, JSON schemas, rules in CEL, readers of the OpenAPI document or traces need.
  const unneeded =
    /node_modules\/(mongodb|pino-pretty|zod|jose|ajv|marked|@bufbuild\/cel|@opentelemetry)\/|packages\/trace\/sdk\.ts|auth\/(api-keys|tokens)\.ts|gateway\/(openapi\.ts|docs\/)/;
  expect(files.filter((url) => unneeded.test(url))).toEqual([]);
  expect(builtins.includes("NativeModule http2")).toBe(true);
  // Kept for the next start, also by a process that is started alone.
  expect(builtins).toMatch(/^\["[^"]+\/compile\//);
  // What only fetch needs.
  expect(builtins.includes("undici")).toBe(false);
});

test("a process that sends traces loads OpenTelemetry's exporter by protobuf, and nothing of gRPC", {
  timeout: 120_000,
}, async () => {
  const { files } = await loadedBy(["services/main.ts", "pet"], "ready", {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
  });
  expect(files.some((url) => url.includes("/node_modules/@opentelemetry/exporter-trace-otlp-proto/"))).toBe(true);
  expect(files.filter((url) => url.includes("grpc-js"))).toEqual([]);
});

test("the petstore in one process keeps compiled code for its next start, too", { timeout: 120_000 }, async () => {
  const ports = { PORT_BASE: `${await freePorts()}` };
  const { builtins } = await loadedBy(["launcher/main.ts", "--single-process"], "ready", ports);
  expect(builtins).toMatch(/^\["[^"]+\/compile\//);
});

const DRIVER_PARTS = /node_modules\/(@mongodb-js\/saslprep|whatwg-url|tr46)\//;

test("a service on MongoDB loads no parts of its driver that few need", { timeout: 120_000 }, async () => {
  const nowhere = { MONGODB_URI: "mongodb://127.0.0.1:1/?replicaSet=rs0" };
  const { files } = await loadedBy(["services/main.ts", "pet"], "waiting", nowhere);
  expect(files.some((url) => url.includes("/node_modules/mongodb/lib/"))).toBe(true);
  expect(files.filter((url) => DRIVER_PARTS.test(url))).toEqual([]);
});

/** The files that are loaded by a program which imports this one and ends. */
async function loadedByImport(file: string): Promise<string[]> {
  const dir = await mkdtemp(join(tmpdir(), "loaded-"));
  const child = spawn(
    process.execPath,
    ["--input-type=module", "--eval", `await import("./${file}"); process.exit();`],
    { cwd: join(import.meta.dirname, "../.."), env: { NODE_V8_COVERAGE: dir }, stdio: "inherit" },
  );
  await once(child, "close");
  const files = await filesIn(dir);
  await rm(dir, { recursive: true });
  return files;
}

test.each(["mongo", "databases", "inspection"])(
  "the store's mongo/%s.ts by itself loads no parts of the driver that few need",
  { timeout: 60_000 },
  async (name) => {
    const files = await loadedByImport(`packages/store/mongo/${name}.ts`);
    expect(files.some((url) => url.includes("/node_modules/mongodb/lib/"))).toBe(true);
    expect(files.filter((url) => DRIVER_PARTS.test(url))).toEqual([]);
    // An import would load a second copy beside the driver's.
    expect(files.filter((url) => url.includes("/node_modules/bson/"))).toHaveLength(1);
  },
);

test("the launcher loads nothing that serves or logs before it starts the processes", { timeout: 60_000 }, async () => {
  const files = await loadedByImport("launcher/launch.ts");
  expect(files.some((url) => url.endsWith("/launcher/supervisor.ts"))).toBe(true);
  expect(files.filter((url) => url.includes("/node_modules/"))).toEqual([]);
});
