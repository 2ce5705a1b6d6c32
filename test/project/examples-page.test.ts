/** docs/use-it-from-your-language.md shows the examples as they are. `test/examples` runs them. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const PAGE = "docs/use-it-from-your-language.md";
const BLOCK = /^(\[(examples\/[^\]]+)\]\(\.\.\/\2\)\n\n```\w+\n)[\s\S]*?^```$/gm;
const page = readFileSync(PAGE, "utf8");

test("the page has the code (`npx vitest run test/project/examples-page.test.ts -u` writes it)", async () => {
  const made = page.replaceAll(BLOCK, (_, link, file) => `${link}${readFileSync(file, "utf8")}\`\`\``);
  await expect(made).toMatchFileSnapshot(`../../${PAGE}`);
});

test("it shows all of them", () => {
  const shown = [...page.matchAll(BLOCK)].map(([, , file]) => file);
  const made = ["examples/python/protoc_gen_python.py", "examples/go/gen/**", "examples/**/petstore*/**"];
  const examples = globSync("examples/*/**/*.{ts,sh,py,go,html}", { exclude: made });
  expect(shown.sort()).toEqual(examples.sort());
});
