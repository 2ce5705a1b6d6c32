/** Takes the pages at their word: runs every command that they show, in the order of the page, and compares what it prints. */
import { globSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mongodbMissing, openPlace } from "../harness/mongodb.ts";
import { endOfShown, filledIn, isAsShown, lastingOf, stepsOf } from "./shown-commands.ts";
import { openTerminal, type Terminal } from "./terminal.ts";

const timeout = 240_000;
const MONGODB = "mongodb://127.0.0.1:27017/?replicaSet=rs0";

/** What is not run, wherever it stands, and why. */
const notRun: readonly (readonly [what: RegExp, why: string])[] = [
  [/^docker /, "it needs a container engine"],
  [/^(helm|kubectl) /, "it needs a cluster"],
  [
    /^(npm test|npm run (test:unit|lint|format|simulate|mutants)|\.ci\/(run|long))\b/,
    "it is what runs this, or changes the sources",
  ],
  [
    /^(sha256sum|git checkout v|npm run release|\(cd path\/to)/,
    "it needs a release; scripts/release.process.test.ts makes and checks some",
  ],
  [/^npm (init|install|pkg) /, "it belongs into a project of its own; .ci/store and .ci/transcoder have one"],
  [/^npx connect-transcoder |localhost:8080\//, "it wants a gRPC service; .ci/command has one and runs them"],
  [/JWT_ISSUER=https:\/\/login\.example|^AUTH_MODE=jwt /, "there is no such issuer; gateway/auth.test.ts has one"],
];
const isRun = (command: string) => !notRun.some(([what]) => what.test(command));

const examples = new Set(globSync("examples/**/*.{ts,sh}").map((file) => readFileSync(file, "utf8")));
const pages = globSync("{*,docs/**/*,bench/*,packages/*/*}.md").flatMap((page) => {
  const text = readFileSync(page, "utf8");
  const steps = stepsOf(text, examples);
  const all = steps.flatMap((step) => (step.kind === "command" ? [step.command] : []));
  const left = steps.filter((step) => step.kind !== "command" || isRun(step.command));
  return all.length === 0 ? [] : [{ page, all, steps: all.some(isRun) ? left : [], mongodb: text.includes(MONGODB) }];
});
const commands = pages.flatMap(({ page, all }) => all.map((command) => ({ page, command })));

test("there are commands to run, and a newcomer's first ones among them", () => {
  expect(commands.filter(({ command }) => isRun(command)).length).toBeGreaterThan(40);
  expect(commands.map(({ command }) => command)).toContain("npm ci && npm start");
});

describe("not run", () => {
  test.each(notRun)("%s: %s", (what, why) => {
    const found = commands.filter(({ command }) => what.test(command));
    for (const { page, command } of found)
      process.stderr.write(`NOT RUN: ${page}: ${command.split("\n")[0]} (${why})\n`);
    expect(found).not.toEqual([]);
  });
});

for (const { page, steps, mongodb } of pages.filter(({ steps }) => steps.length > 0))
  describe.skipIf(mongodb && mongodbMissing)(page, () => {
    const stack = new AsyncDisposableStack();
    let terminal: Terminal;
    beforeAll(async () => {
      const place = mongodb ? stack.use(await openPlace()) : undefined;
      terminal = stack.use(await openTerminal(place && { [MONGODB]: place.uri }));
    }, timeout);
    afterAll(() => stack.disposeAsync(), timeout);

    test.each(steps.map((step, i) => ({ i, step, title: titleOf(step) })))(
      "$i $title",
      { timeout },
      async ({ step }) => {
        const printed = await terminal.run(step);
        if (step.kind !== "file" && step.prints !== undefined) expect(printed).toBe(step.prints);
      },
    );
  });

function titleOf(step: (typeof pages)[number]["steps"][number]): string {
  if (step.kind === "command") return step.command.split("\n")[0] ?? "";
  return step.kind === "file" ? step.name : "and later";
}

describe("how pages are read", () => {
  const page = [
    "```sh\nexport A=1 # one\n\n# two\nfor i in 1 2; do\n  echo $i\ndone\nnpm start\n```",
    "```console\n$ curl -sN http://x/events\nretry: 3000\n$ echo a \\\n> b\na b\n\nc\n$ true\n```",
    "```text\nid: …\n```",
    "```js order.js\nconsole.log(1);\n```",
    "```ts\nlet x;\n```",
  ].join("\n\n");

  test("its steps, in order", () => {
    expect(stepsOf(page)).toEqual([
      { kind: "command", command: "export A=1 # one" },
      { kind: "command", command: "for i in 1 2; do\n  echo $i\ndone" },
      { kind: "command", command: "npm start" },
      { kind: "command", command: "curl -sN http://x/events", prints: "retry: 3000" },
      { kind: "command", command: "echo a \\\nb", prints: "a b\n\nc" },
      { kind: "command", command: "true", prints: "" },
      { kind: "later", prints: "id: …" },
      { kind: "file", name: "order.js", content: "console.log(1);\n" },
    ]);
    expect(["npm ci && npm start", "npm run demo", "curl -sN x", "curl -s x", "a &\nb &"].map(lastingOf)).toEqual([
      "npm start",
      "npm run demo",
      "curl -sN",
      undefined,
      "&",
    ]);
  });

  test("what is an example, and is run as such, is no step", () => {
    expect(stepsOf("```sh\nset -eu\nls\n```\n```sh\nls\n```", new Set(["set -eu\nls\n"]))).toEqual([
      { kind: "command", command: "ls" },
    ]);
  });

  test("what differs from run to run is left open, and nothing else", () => {
    expect(isAsShown('{"id":7,"at":"2026"}', '{"id":7,"at":"…"}')).toBe(true);
    expect(isAsShown('{"id":8,"at":"2026"}', '{"id":7,"at":"…"}')).toBe(false);
    expect(isAsShown("a\nb", "…")).toBe(true);
    expect(isAsShown("a\nb", "a…")).toBe(false);
    expect(isAsShown("a\nb\nc\nd", "a\n…\nd")).toBe(true);
    expect(isAsShown("a", "a\n…\nd")).toBe(false);
    expect(endOfShown("id: 1\nid: 2\n", "id: 2")).toBe(11);
    expect(endOfShown("id: 1\nid: 22\n", "id: 2")).toBeUndefined();
  });

  test("and what was printed last fills it in, in a command", () => {
    const printed = "psk_1_x\npsk_2_y\n";
    expect(filledIn("curl -H 'X-API-Key: psk_…' /pets", printed)).toBe("curl -H 'X-API-Key: psk_2_y' /pets");
    const link = "link: </pets?limit=2&pageToken=abc>; rel=next";
    expect(filledIn("curl 'http://x/pets?limit=2&pageToken=…'", link)).toBe(
      "curl 'http://x/pets?limit=2&pageToken=abc'",
    );
    expect(() => filledIn("curl -H 'X-API-Key: psk_…' /pets", "")).toThrow("begins with psk_");
  });
});
