/** Takes the README at its word. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "./fixtures/run.ts";

const readme = readFileSync(join(import.meta.dirname, "README.md"), "utf8");
const example = join(import.meta.dirname, "fixtures/example.ts");
const block = (language: string) => new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "ms").exec(readme)?.[1];

test("the example is the file, and runs until it is told to stop", async () => {
  expect(block("ts")).toBe(readFileSync(example, "utf8"));
  await using it = run([example], { INTERVAL: "10ms" });
  await it.printed(/ready at nowhere/);
  await it.printed(/tick 3/);
  it.process.kill("SIGTERM");
  expect(await it.ended).toBe(0);
  expect(it.output()).toMatch(/"closed last".*"stopped"/s);
});

test("and says in one line what is wrong", async () => {
  await using it = run([example], { INTERVAL: "never" });
  expect(await it.ended).toBe(1);
  expect(it.output()).toBe(block("text"));
});

test("what can be imported, and nothing else, is exported", () => {
  const { exports } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));
  const named = [...readme.matchAll(/^\| `@petstore\/runtime\/([\w-]+)`/gm)].map(([, name]) => `./${name}`);
  expect(Object.keys(exports).toSorted()).toEqual(named.toSorted());
});
