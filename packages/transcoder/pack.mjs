// The library is what the compiler makes of it. The command is one bundle, for it takes more from the packages of this
// repository than the library does; what others publish is not in it.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import { pack } from "../../scripts/pack.mjs";

const { dependencies, peerDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const installed = Object.keys({ ...dependencies, ...peerDependencies });
const external = (id) => installed.some((name) => id === name || id.startsWith(`${name}/`));

const tsc = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");

async function build() {
  execFileSync(process.execPath, [tsc, "-p", "tsconfig.command.json"], { stdio: ["ignore", "inherit", "inherit"] });
  const made = await rolldown({
    input: { bin: "command/bin.mjs" },
    platform: "node",
    external,
    transform: { target: "node22" },
  });
  // Without hashes, which differ by where it is built.
  const { output } = await made.write({
    dir: "dist/command",
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
  });
  const foreign = output
    .flatMap(({ modules = {} }) => Object.keys(modules))
    .filter((id) => id.includes("/node_modules/"));
  if (foreign.length > 0)
    throw new Error(
      `These belong to other packages: name those as dependencies. ${foreign.map((id) => relative(".", id)).join(", ")}`,
    );
}

await pack(
  {
    "node_modules/@protobufs/google/api/annotations.proto": "third-party/google/api/annotations.proto",
    "node_modules/@protobufs/google/api/http.proto": "third-party/google/api/http.proto",
    "packages/transcoder/proto/google/api/httpbody.proto": "third-party/google/api/httpbody.proto",
    "packages/transcoder/proto/google/api/field_behavior.proto": "third-party/google/api/field_behavior.proto",
    "packages/transcoder/proto/google/api/resource.proto": "third-party/google/api/resource.proto",
    "node_modules/.cache/protos/buf/validate/validate.proto": "third-party/buf/validate/validate.proto",
  },
  { build, manifest: { bin: { "connect-transcoder": "./dist/command/bin.js" } } },
);
