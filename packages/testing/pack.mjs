// The package is two bundles: what a test imports, and the petstore that it starts. What others publish is not in them.
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { rolldown } from "rolldown";
import { pack } from "../../scripts/pack.mjs";

const dependencies = Object.keys(JSON.parse(readFileSync("package.json", "utf8")).dependencies);
// Only the engine in memory is used, and there are no traces: the others are never loaded.
const isUnused = (id) => /\/(mongo\/mongo|sqlite\/(sqlite|directory)|trace\/sdk)\.ts$/.test(id);
const external = (id) => dependencies.some((name) => id === name || id.startsWith(`${name}/`)) || isUnused(id);
// Node 22 lacks one of the classes that the petstore uses.
const banner = ({ name }) => (name === "for-tests" ? readFileSync("async-disposable-stack.js", "utf8") : "");

async function bundle(input, format, extension) {
  // An import for what that does would name it by its path here.
  const treeshake = { moduleSideEffects: (id) => !isUnused(id) };
  const made = await rolldown({ input, platform: "node", external, treeshake, transform: { target: "node22" } });
  // Without hashes, which differ by where it is built.
  const name = `[name].${extension}`;
  await made.write({ dir: "dist", format, banner, entryFileNames: name, chunkFileNames: name });
}

async function build() {
  await bundle({ index: "index.ts", main: "main.ts", "for-tests": "../../launcher/for-tests.ts" }, "esm", "js");
  await bundle({ index: "index.ts" }, "cjs", "cjs");
  // A declaration is one of an ES module or of CommonJS by the package.json above it.
  cpSync("dist/types", "dist/types-commonjs", { recursive: true });
  writeFileSync("dist/types-commonjs/package.json", '{"type":"commonjs"}');
}

const types = "./dist/types-commonjs/testing/index.d.ts";
await pack(
  { "console/dist": "console/dist", "docs/testing.md": "README.md" },
  {
    build,
    manifest: {
      exports: {
        ".": {
          import: { types: "./dist/types/testing/index.d.ts", default: "./dist/index.js" },
          require: { types, default: "./dist/index.cjs" },
        },
      },
      // For TypeScript that does not look at `exports` ("moduleResolution": "node10").
      main: "./dist/index.cjs",
      types,
      bin: { "petstore-test": "./dist/main.js" },
    },
  },
);
