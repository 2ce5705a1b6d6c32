/** Takes the README at its word. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realTime } from "@petstore/runtime/clock";
import { expect, test } from "vitest";
import { bank } from "./example.ts";
import { silent } from "./fixtures/silent.ts";

const here = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");

test("the example of the README is the file, and does what it says", async () => {
  expect(here("README.md")).toContain(`\`\`\`ts\n${here("example.ts")}\`\`\``);
  const dir = mkdtempSync(join(tmpdir(), "store-readme-"));
  try {
    const accounts = await bank(dir, { ...realTime, log: silent, onFatal: (error) => expect.fail(String(error)) });
    expect(accounts).toEqual([{ _id: 1, owner: "Ada", balance: 20, rev: 3 }]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("what the README says can be imported, and nothing else, is exported", () => {
  const { exports } = JSON.parse(here("package.json"));
  const named = [...here("README.md").matchAll(/^\| `@petstore\/store\/([\w-]+)`/gm)].map(([, name]) => `./${name}`);
  expect(Object.keys(exports).toSorted()).toEqual(named.toSorted());
});
