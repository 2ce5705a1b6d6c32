/** Takes the README at its word. `.ci/store` tries the packed package. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openBank } from "./example/bank.ts";
import { openBankStore } from "./example/store.ts";

const here = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");

test.each(["bank.ts", "store.ts"])("the README shows %s as it is", (name) => {
  expect(here("README.md")).toContain(`\`\`\`ts\n${here(join("example", name))}\`\`\``);
});

test.each(["memory", "files"])("the example pays out no more than there is, in %s", async (engine) => {
  const dir = mkdtempSync(join(tmpdir(), "store-readme-"));
  try {
    const store = await openBankStore(undefined, engine === "files" ? dir : undefined);
    const bank = await openBank(store);
    const id = await bank.openAccount("Ada");
    expect(await bank.pay(id, 50)).toBe(true);
    expect(await Promise.all([bank.pay(id, -30), bank.pay(id, -30)])).toEqual([true, false]);
    expect(await bank.accountsOf("Ada")).toEqual([{ _id: 1, owner: "Ada", balance: 20, rev: 3 }]);
    await store.close();
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("what the README says can be imported, and nothing else, is exported", () => {
  const { exports } = JSON.parse(here("package.json"));
  const named = [...here("README.md").matchAll(/^\| `@petstore\/store\/([\w-]+)`/gm)].map(([, name]) => `./${name}`);
  expect(Object.keys(exports).toSorted()).toEqual(named.toSorted());
});
