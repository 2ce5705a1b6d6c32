// What `npm pack` runs in a package before and after. The repository runs the sources as they are; what is packed is
// compiled, and its package.json names the compiled files. Plain JavaScript, for npm runs it on whatever Node is there.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "..");
const kept = "package.json.kept";

/**
 * Runs the step that the command line names. `copies` are packed too: from a place in the repository to one in the package.
 * `build` makes more than the TypeScript compiler does, and `manifest` is put into the package.json.
 */
export async function pack(copies, { build = () => {}, manifest: more = {} } = {}) {
  const all = { ...copies, LICENSE: "LICENSE" };
  const clean = () => {
    for (const made of ["dist", ...Object.values(all).map((to) => to.split("/")[0])])
      rmSync(made, { recursive: true, force: true });
  };
  const restore = () => {
    renameSync(kept, "package.json");
    clean();
  };
  const prepare = async () => {
    if (existsSync(kept)) restore(); // an earlier run was cut off
    clean();
    execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    await build();
    for (const [from, to] of Object.entries(all)) {
      mkdirSync(dirname(to), { recursive: true });
      cpSync(join(root, from), to, { recursive: true });
    }
    const { scripts: _, ...manifest } = JSON.parse(readFileSync("package.json", "utf8"));
    renameSync("package.json", kept);
    const exported = Object.entries(manifest.exports).map(([name, source]) => [name, compiled(source)]);
    writeFileSync(
      "package.json",
      `${JSON.stringify({ ...manifest, exports: Object.fromEntries(exported), ...more }, null, 2)}\n`,
    );
  };
  await { prepare, restore }[process.argv[2]]();
}

const compiled = (source) => {
  const path = source.replace(/^\.\//, "./dist/").replace(/\.ts$/, "");
  return { types: `${path}.d.ts`, default: `${path}.js` };
};
