/** What people read of the command is what it does. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FLAGS } from "./flags.ts";
import { HELP } from "./help.ts";

const read = (name: string) => readFileSync(join(import.meta.dirname, "..", name), "utf8");
const readme = read("README.md");
const section = (heading: string, next: string) => {
  const begin = readme.indexOf(`\n${heading}\n`);
  const end = readme.indexOf(`\n${next}`, begin + 1);
  expect([heading, begin > 0, end > begin]).toEqual([heading, true, true]);
  return readme.slice(begin, end);
};

test.each([
  ["--help", HELP.replace("--include_imports", "")],
  ["the table of the README", section("### Flags", "It exits")],
])("every flag is in %s, which names no other", (_, text) => {
  const named = new Set(text.match(/(?<![\w-])--[a-z][a-z-]*/g));
  expect([...named].sort()).toEqual(
    Object.keys(FLAGS)
      .map((name) => `--${name}`)
      .sort(),
  );
});

test("the README shows the Dockerfile as it is, which has no more than ten lines", () => {
  const dockerfile = read("example/Dockerfile");
  expect(readme).toContain(`\`\`\`dockerfile\n${dockerfile}\`\`\``);
  expect(dockerfile.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
  // There is no Docker where the tests run: .ci/command does what its lines RUN and ENTRYPOINT do.
  expect(dockerfile).toContain(`FROM ${/^ARG NODE_IMAGE=(.*)$/m.exec(read("../../Dockerfile"))?.[1]}\n`);
});
