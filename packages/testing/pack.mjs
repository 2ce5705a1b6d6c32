// The package is two bundles: what a test imports, and the petstore that it starts. What others publish is not in them.
import { readFileSync } from "node:fs";
import { rolldown } from "rolldown";
import { pack } from "../../scripts/pack.mjs";

const dependencies = Object.keys(JSON.parse(readFileSync("package.json", "utf8")).dependencies);
// Only the engine in memory is used: the others are never loaded.
const isOtherEngine = (id) => /\/(mongo\/mongo|sqlite\/(sqlite|directory))\.ts$/.test(id);
const external = (id) => dependencies.some((name) => id === name || id.startsWith(`${name}/`)) || isOtherEngine(id);
// Node 22 lacks one of the classes that the petstore uses.
const banner = ({ name }) => (name === "for-tests" ? readFileSync("async-disposable-stack.js", "utf8") : "");

async function bundle(input, format, extension) {
  const made = await rolldown({ input, platform: "node", external, transform: { target: "node22" } });
  const names = { entryFileNames: `[name].${extension}`, chunkFileNames: `[name]-[hash].${extension}` };
  await made.write({ dir: "dist", format, banner, ...names });
}

async function build() {
  await bundle({ index: "index.ts", main: "main.ts", "for-tests": "../../launcher/for-tests.ts" }, "esm", "js");
  await bundle({ index: "index.ts" }, "cjs", "cjs");
}

const types = "./dist/types/testing/index.d.ts";
await pack(
  { "console/dist": "console/dist", "docs/testing.md": "README.md" },
  {
    build,
    manifest: {
      exports: { ".": { types, import: "./dist/index.js", require: "./dist/index.cjs" } },
      bin: { "petstore-test": "./dist/main.js" },
    },
  },
);
