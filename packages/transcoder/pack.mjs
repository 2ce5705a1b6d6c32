// `npm pack` runs this before and after. The repository runs the sources as they are; what is packed is compiled, and its
// package.json names the compiled files. Plain JavaScript, for npm runs it on whatever Node is there.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = "../..";
const kept = "package.json.kept";

const steps = {
  prepare() {
    if (existsSync(kept)) steps.restore(); // an earlier run was cut off
    steps.clean();
    execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    copy("node_modules/@protobufs/google/api/annotations.proto", "third-party/google/api/annotations.proto");
    copy("node_modules/@protobufs/google/api/http.proto", "third-party/google/api/http.proto");
    copy("node_modules/.cache/protos/buf/validate/validate.proto", "third-party/buf/validate/validate.proto");
    copy("LICENSE", "LICENSE");
    const { scripts: _, ...manifest } = JSON.parse(readFileSync("package.json", "utf8"));
    renameSync("package.json", kept);
    const exported = Object.entries(manifest.exports).map(([name, source]) => [name, compiled(source)]);
    writeFileSync(
      "package.json",
      `${JSON.stringify({ ...manifest, exports: Object.fromEntries(exported) }, null, 2)}\n`,
    );
  },
  restore() {
    renameSync(kept, "package.json");
    steps.clean();
  },
  clean() {
    for (const made of ["dist", "third-party", "LICENSE"]) rmSync(made, { recursive: true, force: true });
  },
};

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(join(root, from), to);
}

const compiled = (source) => {
  const path = source.replace(/^\.\//, "./dist/").replace(/\.ts$/, "");
  return { types: `${path}.d.ts`, default: `${path}.js` };
};

steps[process.argv[2]]();
