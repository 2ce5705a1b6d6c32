/**
 * `npm run release -- [--dry-run]`: makes a release of the commit that is checked out. The packages are built from the source
 * archive, in a directory of its own with an installation of its own: of this working tree nothing else gets in.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { notesOf, obstacles } from "./release-rules.ts";
import { billOfMaterials } from "./sbom.ts";

const help = `npm run release                 makes a release of this commit in release/, tags it, and says how to publish it
npm run release -- --dry-run    the same without the tag; also of a commit that has it, to compare

The version is that of package.json, and the first in CHANGELOG.md. It takes a minute or two.
docs/releases.md says what is in a release, and how to check one.
`;

const OUT = "release";

try {
  run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

function run(): void {
  const options = { "dry-run": { type: "boolean", default: false }, help: { type: "boolean" } } as const;
  const { "dry-run": dryRun, help: asked } = parseArgs({ options }).values;
  if (asked) return void process.stdout.write(help);
  // npm takes what stands before the two dashes for itself.
  if (process.env.npm_config_dry_run) throw new Error("Two dashes are missing: npm run release -- --dry-run");

  const { version } = manifest("package.json");
  const changelog = readFileSync("CHANGELOG.md", "utf8");
  const chart = readFileSync("charts/petstore/Chart.yaml", "utf8");
  const packages = globSync("packages/*/package.json");
  const others = packages.filter((path) => manifest(path).version !== version);
  const changes = git("status", "--porcelain").split("\n").filter(Boolean);
  const found = obstacles({ version, others, changelog, chart, changes, tagged: tagged(`v${version}`) }, dryRun);
  if (found.length > 0) throw new Error(found.join("\n\n"));

  // Files have the same modes, whoever makes them.
  process.umask(0o022);
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT);
  const published = packages.map(manifest).filter((one) => !one.private);
  build(
    version,
    published.map(({ name }) => name),
  );
  write("notes.md", notesOf(changelog, version));
  const files = readdirSync(OUT).sort();
  // The last file: a release that has it is whole.
  const sums = files.map((name) => `${sha256(name)}  ${name}\n`).join("");
  write("SHA256SUMS", sums);
  if (!dryRun) git("tag", "--annotate", "--message", `petstore ${version}`, `v${version}`);
  console.log(`\n${sums}\n${OUT}/ has petstore ${version}, and ${next(version, files, dryRun)}`);
}

/** Everything but the notes and the sums. */
function build(version: string, packages: readonly string[]): void {
  const tree = mkdtempSync(join(tmpdir(), "petstore-release-"));
  // Ctrl-C ends the command that runs, and by that this process: here it would leave the tree behind.
  process.once("SIGINT", () => {});
  try {
    console.log("the source archive");
    const name = `petstore-${version}`;
    const archive = execFileSync("git", ["-c", "tar.umask=0022", "archive", `--prefix=${name}/`, "HEAD"], {
      maxBuffer: Number.POSITIVE_INFINITY,
    });
    // The operating system, which zlib writes into the header: unknown, by RFC 1952.
    write(`${name}.tar.gz`, gzipSync(archive, { level: 9 }).fill(255, 9, 10));
    execFileSync("tar", ["-x", "-C", tree, "--strip-components=1"], { input: archive });

    console.log("an installation of it");
    const env = {
      ...process.env,
      // npm runs on the Node that the installation brings along: others may pack the same files to other bytes.
      PATH: `${join(tree, "node_modules/.bin")}${delimiter}${process.env.PATH}`,
      // Scripts build what is packed. Many have `ignore-scripts=true` in their ~/.npmrc.
      npm_config_ignore_scripts: "false",
    };
    const npm = (...args: string[]) =>
      execFileSync("npm", [...args, "--loglevel=error"], { cwd: tree, env, stdio: ["ignore", "ignore", "inherit"] });
    npm("ci", "--prefer-offline");

    console.log("the bill of materials");
    write(`${name}.cdx.json`, billOfMaterials(tree, new Date(git("show", "--no-patch", "--format=%cI", "HEAD"))));

    console.log(`the packages: ${packages.join(", ")}`);
    npm("pack", ...packages.map((one) => `--workspace=${one}`), "--pack-destination", join(process.cwd(), OUT));
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

/** What is left to do, for whoever may. */
function next(version: string, files: readonly string[], dryRun: boolean): string {
  if (dryRun) return `without --dry-run v${version} would be tagged.`;
  const publish = files.filter((name) => name.endsWith(".tgz"));
  return `v${version} is tagged. To publish it:
  git push origin v${version}
${publish.map((name) => `  npm publish ./${OUT}/${name} --access public`).join("\n")}
  and put all that is in ${OUT}/ beside the tag, with notes.md as the text.
docs/releases.md says what npm needs for that.`;
}

function git(...args: string[]): string {
  return execFileSync("git", args, { encoding: "utf8" }).trimEnd();
}

function write(name: string, content: string | Uint8Array): void {
  writeFileSync(join(OUT, name), content);
}

function sha256(name: string): string {
  return createHash("sha256")
    .update(readFileSync(join(OUT, name)))
    .digest("hex");
}

function manifest(path: string): { readonly name: string; readonly version: string; readonly private?: boolean } {
  return JSON.parse(readFileSync(path, "utf8"));
}

function tagged(tag: string): "this" | "another" | "none" {
  if (git("tag", "--list", tag) === "") return "none";
  return git("tag", "--list", tag, "--points-at", "HEAD") === "" ? "another" : "this";
}
