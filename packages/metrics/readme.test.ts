/** Takes the README at its word. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openShop } from "./fixtures/example.ts";

const here = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");
const readme = here("README.md");
const block = (language: string) => new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "ms").exec(readme)?.[1];

test("the example is the file, and a scraper reads what it says", async () => {
  expect(block("ts")).toBe(here("fixtures/example.ts"));
  const { sell, server } = openShop(10);
  sell("left", 3, 0.25);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${port}`, { headers: { accept: "text/plain" } });
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(await answer.text()).toBe(block("text"));
  server.close();
  server.closeAllConnections();
});

test("what can be imported, and nothing else, is exported", () => {
  const { exports } = JSON.parse(here("package.json"));
  const named = [...readme.matchAll(/^\| `@petstore\/metrics\/([\w-]+)`/gm)].map(([, name]) => `./${name}`);
  expect(Object.keys(exports).toSorted()).toEqual(named.toSorted());
});
