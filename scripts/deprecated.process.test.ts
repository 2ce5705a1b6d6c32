/** The command beside a petstore with two gateways, as `npm start` runs it. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../packages/runtime/fixtures/run.ts";
import { freePorts } from "../test/harness/instances.ts";

const timeout = 240_000;
const stack = new AsyncDisposableStack();
let ports: Record<string, string>;
let base: number;

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), "deprecated-"));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  base = await freePorts(2);
  ports = { PORT_BASE: `${base}`, REPLICAS: "gateway:2" };
  const it = run(["launcher/main.ts"], { ...ports, DATA_DIR: dir, LOG_LEVEL: "warn", PATH: process.env.PATH ?? "" });
  stack.use(it);
  await it.printed(/is ready/);
}, timeout);
afterAll(() => stack.disposeAsync(), timeout);

/** Runs the command; what it printed, and how it ended. */
const deprecated = (args: readonly string[], env: Record<string, string> = ports) =>
  new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, ["scripts/deprecated.ts", ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });

/** Gateways have admin ports of their own. */
const admins = () => [base + 100, base + 105].map((port) => `http://127.0.0.1:${port}`);
const reports = () => Promise.all(admins().map(async (url) => (await fetch(`${url}/deprecated`)).json()));
const counts = async () => (await reports()).map(({ calls }) => calls.length);

test("calls of all gateways are added up", { timeout }, async () => {
  expect(await deprecated([])).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      /^Nobody has called a deprecated operation\.\nAsked: 2 gateways\. Counted since \S+Z\.\n$/,
    ),
    stderr: "",
  });
  let calls = 0;
  // Each on a connection of its own, which may go to either gateway.
  for (; (await counts()).includes(0); calls++)
    await (await fetch(`http://127.0.0.1:${base}/pets/7`, { headers: { connection: "close" } })).text();
  const { code, stdout } = await deprecated(["--json"]);
  expect(code).toBe(0);
  const row = { operation: "GET /pets/{petId}", successor: "/pets?id={pet_id}", caller: "address 127.0.0.1", calls };
  const [first, second] = await reports();
  expect(JSON.parse(stdout)).toEqual({
    since: first.since > second.since ? first.since : second.since,
    calls: [{ ...row, sunset: "2027-12-31T23:59:59.000Z", last: expect.stringMatching(/^2\d{3}-\S+Z$/) }],
    forgotten: 0,
  });
  expect((await deprecated(["--admin", admins()[0] ?? ""])).stdout).toContain("\nAsked: 1 gateway. Counted since ");
  expect((await deprecated(admins().flatMap((url) => ["--admin", `${url}/`]))).stdout).toMatch(
    new RegExp(
      "^GET /pets/\\{petId\\}, sunset 2027-12-31T23:59:59.000Z, successor /pets\\?id=\\{pet_id\\}\n" +
        `  ${calls} calls by address 127\\.0\\.0\\.1, the last at 2\\d{3}-\\S+Z\nAsked: 2 gateways\\. Counted since .*\n$`,
    ),
  );
});

test.each<[string, readonly string[], Record<string, string>, string]>([
  [
    "a gateway that is not there",
    ["--admin", "http://127.0.0.1:1"],
    {},
    "http://127.0.0.1:1/deprecated can't be asked",
  ],
  ["no admin port", [], { ADMIN_PORT: "off" }, "ADMIN_PORT=off does not say where"],
  ["a wrong setting", [], { PORT_BASE: "x" }, "PORT_BASE=x is wrong"],
  ["an option that there is not", ["--jsno"], {}, "--jsno"],
])("with %s it says what to do, and ends with 2", async (_, args, env, why) => {
  const { code, stderr, stdout } = await deprecated(args, env);
  expect(stderr).toContain(why);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
});

test("it does not wait for a gateway that hangs", { timeout }, async () => {
  await using silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const { code, stderr } = await deprecated(["--admin", `http://127.0.0.1:${port}`]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("/deprecated can't be asked") });
});

test("it explains itself", async () => {
  expect(await deprecated(["--help"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("npm run -s deprecated"),
  });
});
