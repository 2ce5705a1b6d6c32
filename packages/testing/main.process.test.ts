/** `petstore-test`, as other languages use it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePorts } from "../../test/harness/instances.ts";
import { type Run, run } from "../runtime/fixtures/run.ts";

const timeout = 60_000;
const script = join(import.meta.dirname, "main.ts");
const petstoreTest = (...args: string[]): Run => run([script, ...args], { PATH: process.env.PATH ?? "" });
const node = (code: string) => ["--", process.execPath, "--eval", code];

const isGone = (url: string) =>
  fetch(url).then(
    () => false,
    () => true,
  );

test("a command finds it by its variables, and its exit code is the command's", { timeout }, async () => {
  const code = `const { PETSTORE_URL, PETSTORE_ADMIN_URL } = process.env;
    Promise.all([fetch(PETSTORE_URL + "/pets"), fetch(PETSTORE_ADMIN_URL + "/reset", { method: "POST" })])
      .then(async ([pets, reset]) => console.log((await pets.json()).length, reset.status, PETSTORE_URL))
      .then(() => process.exit(7));`;
  await using it = petstoreTest("--seed", "3", "--pets", "5", ...node(code));
  expect(await it.ended).toBe(7);
  const [, url] = /^5 204 (\S+)$/m.exec(it.output()) ?? [];
  expect(await isGone(`${url}`)).toBe(true);
});

test("a command that a signal ends counts as in a shell", { timeout }, async () => {
  await using it = petstoreTest(...node("process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)"));
  expect(await it.ended).toBe(128 + 15);
});

test("a command that is not there is said", { timeout }, async () => {
  await using it = petstoreTest("--", "/no/such/command");
  expect(await it.ended).toBe(127);
  expect(it.output()).toContain("/no/such/command can't be run: ");
});

test.each(["SIGTERM", "SIGINT"] as const)(
  "without a command it prints where it is, and stays until %s",
  { timeout },
  async (signal) => {
    await using it = petstoreTest("--now", "2030-01-31");
    const [, url] = await it.printed(/^PETSTORE_URL=(\S+)\nPETSTORE_ADMIN_URL=http:\S+$/m);
    expect((await fetch(`${url}/pets`)).status).toBe(200);
    it.process.kill(signal);
    expect(await it.ended).toBe(0);
    expect(await isGone(`${url}`)).toBe(true);
  },
);

test("PORT chooses its port", { timeout }, async () => {
  const port = await freePorts();
  await using it = run([script], { PATH: process.env.PATH ?? "", PORT: `${port}` });
  await it.printed(new RegExp(`^PETSTORE_URL=http://127.0.0.1:${port}$`, "m"));
});

test("it ends with the process that started it", { timeout }, async () => {
  const parent = spawn("sh", ["-c", `"${process.execPath}" "${script}"; true`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await once(parent.stdout, "data");
  parent.kill("SIGKILL");
  const [, url] = /^PETSTORE_URL=(\S+)/.exec(`${said}`) ?? [];
  await expect.poll(() => isGone(`${url}`), { timeout: 30_000 }).toBe(true);
});

test.each([
  [["--sead", "1"], 2, "Unknown option '--sead'"],
  [["--seed", "one"], 2, "--seed must be a whole number, not one."],
  [["--now", "soon"], 2, "--now must be a moment such as"],
  [["npm", "test"], 2, "Unexpected argument 'npm'"],
  [["--"], 2, "Say which command to run after --."],
  [["--pets", "999999"], 1, "There can be 0 to"],
  [["--faults", "/no/such/file"], 1, "FAULTS_FILE=/no/such/file can't be used. ENOENT"],
])("%j ends with %i", { timeout }, async (args, code, why) => {
  await using it = petstoreTest(...args);
  expect(await it.ended).toBe(code);
  expect(it.output()).toContain(why);
});

test("--help says what there is", { timeout }, async () => {
  await using it = petstoreTest("--help");
  expect(await it.ended).toBe(0);
  expect(it.output()).toContain("petstore-test [options] [-- COMMAND]");
});
