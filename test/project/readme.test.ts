/** Takes the README at its word: runs every command and compares what it prints, follows every link. */
import { execFile, spawn } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../harness/instances.ts";

const readme = readFileSync("README.md", "utf8");
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "gms"))].map(([, text]) => text ?? "");

/** Commands after "$", each with the lines that it is said to print. */
const commands = blocks("console").flatMap((block) =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [command = "", ...output] = text.trimEnd().split("\n");
      return { command, output: output.join("\n") };
    }),
);

let portBase: number;
const dataDir = mkdtempSync(join(tmpdir(), "petstore-readme-"));
let petstore: ReturnType<typeof spawn>;
beforeAll(async () => {
  expect(blocks("sh")).toContain("npm ci && npm start\n");
  portBase = await freePorts();
  const env = { ...process.env, PORT_BASE: String(portBase), DATA_DIR: dataDir };
  petstore = spawn("npm", ["start"], { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  petstore.once("exit", (code) => reject(new Error(`npm start ended with ${code}`)));
  for (const stream of [petstore.stdout, petstore.stderr])
    stream?.on("data", (text) => String(text).includes("The petstore is ready") && resolve());
  await promise;
});
afterAll(async () => {
  const ended = new Promise((resolve) => petstore.once("exit", resolve));
  process.kill(-(petstore.pid as number), "SIGTERM");
  await ended;
  rmSync(dataDir, { recursive: true });
});

/** Runs a command as it stands, at the ports of this petstore. Pet.status may lag by 250 ms, so it looks again. */
async function run(command: string, expected: string): Promise<string> {
  const here = command.replace(/127\.0\.0\.1:80(8\d)/g, (_, port) => `127.0.0.1:${portBase + Number(port) - 80}`);
  const env = { ...process.env, PETSTORE_URL: `http://127.0.0.1:${portBase}` };
  for (let attempt = 1; ; attempt++) {
    const { stdout } = await promisify(execFile)("bash", ["-c", here], { env });
    const printed = stdout.replace(/[ ]+$/gm, "").trimEnd();
    if (printed === expected || attempt === 20 || !/-s '/.test(command)) return printed;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("there are commands to run", () => {
  expect(commands.length).toBeGreaterThan(12);
  expect(commands.every(({ output }) => output !== "")).toBe(true);
});

test.each(commands)("$command", async ({ command, output }) => {
  expect(await run(command, output)).toBe(output);
});

describe("what else it says", () => {
  test("the example is the file", () => {
    expect(blocks("ts")).toEqual([readFileSync("examples/connect.ts", "utf8")]);
  });

  test.each([...globSync("docs/**/*.md"), "README.md", "CONTRIBUTING.md", ...globSync("packages/*/README.md")])(
    "the links of %s lead somewhere",
    (path) => {
      const links = [...readFileSync(path, "utf8").matchAll(/\]\(([^)#]+?)(#[^)]*)?\)/g)].map(([, link]) => link ?? "");
      for (const link of links.filter((link) => !link.startsWith("http")))
        expect(existsSync(join(path, "..", link)), link).toBe(true);
    },
  );

  test("its table of variables is complete, and each of them is read", () => {
    const settings = globSync("{config,*/config}.ts").map((path) => readFileSync(path, "utf8"));
    const read = settings.flatMap((text) => [
      ...text.matchAll(/\b([A-Z][A-Z_]+): (?:withDefault|optional|required)\(/g),
    ]);
    const names = new Set(read.map(([, name]) => name ?? ""));
    expect(names.size).toBeGreaterThan(25);
    for (const name of names) expect(readme, name).toContain(`\`${name}\``);
    const rows = readme.split("\n").filter((line) => /^\| `[A-Z_]+`/.test(line));
    const told = rows.flatMap((row) => row.split("|")[1]?.match(/[A-Z_]+/g) ?? []);
    expect(told.filter((name) => !names.has(name))).toEqual([]);
  });
});
