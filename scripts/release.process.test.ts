/** Releases of the sources as they are here, in repositories of their own. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

interface Locked {
  readonly name?: string;
  readonly version: string;
  readonly integrity?: string;
  readonly link?: boolean;
}

interface Component {
  readonly purl: string;
  readonly name: string;
  readonly hashes?: readonly { readonly content: string }[];
}

// Each of the two releases is made in an installation of its own.
const timeout = 900_000;
const place = mkdtempSync(join(tmpdir(), "releases-"));
const [one, other] = [join(place, "one"), join(place, "farther/away/other")];
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const release = `'${process.execPath}' scripts/release.ts`;
const me = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@b",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@b",
};

function run(cwd: string, command: string, env: NodeJS.ProcessEnv = {}) {
  const options = { cwd, encoding: "utf8", env: { ...process.env, ...me, ...env } } as const;
  const { status, stdout, stderr } = spawnSync("sh", ["-c", command], options);
  return { status, printed: stdout + stderr };
}

function lines(cwd: string, command: string): readonly string[] {
  const { status, printed } = run(cwd, command);
  expect([command, status, printed]).toEqual([command, 0, printed]);
  return printed.split("\n").filter(Boolean).sort();
}

const sha256 = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");
const made = (repository: string) => {
  const directory = join(repository, "release");
  return Object.fromEntries(readdirSync(directory).map((name) => [name, sha256(join(directory, name))]));
};

beforeAll(() => {
  const left = ["node_modules", ".git", "data", "release"];
  cpSync(".", one, { recursive: true, verbatimSymlinks: true, filter: (path) => !left.includes(basename(path)) });
  const changelog = join(one, "CHANGELOG.md");
  // As it is when a version is released.
  writeFileSync(changelog, readFileSync(changelog, "utf8").replace(/^## Unreleased\n.*?(?=^## )/ms, ""));
  lines(one, "git init --quiet && git add --all && git commit --quiet --message 'All of it'");
}, timeout);
afterAll(() => rmSync(place, { recursive: true, force: true }));

test("what is not committed is in the way, and nothing is made", () => {
  appendFileSync(join(one, "README.md"), "\n");
  const expected = {
    status: 1,
    printed: expect.stringContaining("Commit or remove what is in none:\n   M README.md\n"),
  };
  expect(run(one, `${release} --dry-run`)).toEqual(expected);
  expect(readdirSync(one)).not.toContain("release");
  lines(one, "git checkout --quiet README.md");
});

test("`npm run release --dry-run`, which npm reads as an option of its own, is no release", () => {
  const expected = { status: 1, printed: "Two dashes are missing: npm run release -- --dry-run\n" };
  expect(run(one, release, { npm_config_dry_run: "true" })).toEqual(expected);
});

test("two clones make the same bytes, wherever they are and whoever makes them", { timeout }, () => {
  const dry = run(one, `${release} --dry-run`);
  expect(dry).toEqual({
    status: 0,
    printed: expect.stringContaining(`without --dry-run v${version} would be tagged.\n`),
  });
  expect(dry.printed).not.toContain("publish");
  expect(lines(one, "git tag")).toEqual([]);

  mkdirSync(join(place, "temporary"));
  lines(place, `umask 077 && git clone --quiet ${one} ${other}`);
  lines(other, "git config tar.umask 0077");
  // In no commit, and ignored by git alone.
  appendFileSync(join(other, ".git/info/exclude"), "left-over.ts\n");
  writeFileSync(join(other, "packages/store/example/left-over.ts"), "");
  const habits = {
    TMPDIR: join(place, "temporary"),
    TZ: "Asia/Tokyo",
    LC_ALL: "C.UTF-8",
    npm_config_ignore_scripts: "true",
  };
  const real = run(other, `umask 077 && ${release}`, habits);
  expect(real).toEqual({ status: 0, printed: expect.stringContaining(`git push origin v${version}`) });
  expect(made(other)).toEqual(made(one));
  expect(readdirSync(join(place, "temporary")).filter((name) => name.startsWith("petstore"))).toEqual([]);

  const packages = ["connect-transcoder", "petstore-client", "petstore-store", "petstore-testing"];
  expect(Object.keys(made(one)).sort()).toEqual(
    [
      ...packages.map((name) => `${name}-${version}.tgz`),
      ...["SHA256SUMS", "notes.md", `petstore-${version}.cdx.json`, `petstore-${version}.tar.gz`],
    ].sort(),
  );
});

test("the source archive has what is committed, and nothing else", () => {
  const archived = lines(one, `tar -tzf release/petstore-${version}.tar.gz | grep -v '/$'`);
  expect(archived).toEqual(lines(one, "git ls-files").map((path) => `petstore-${version}/${path}`));
});

test("the bill of materials has all that is locked, with its hashes, and who needs it", () => {
  const sbom = JSON.parse(readFileSync(join(one, `release/petstore-${version}.cdx.json`), "utf8"));
  expect(sbom).toMatchObject({
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    metadata: {
      timestamp: new Date(lines(one, "git show --no-patch --format=%cI")[0] ?? "").toISOString(),
      component: { type: "application", name: "petstore", version, purl: `pkg:npm/petstore@${version}` },
    },
  });
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, Locked> };
  const locked = Object.entries(packages)
    .filter(([path, { link }]) => path !== "" && !link)
    .map(([path, { name: own, version, integrity }]) => {
      const name = own ?? path.replace(/.*node_modules\//, "");
      const sha512 = integrity && Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex");
      return [`pkg:npm/${name.replace("@", "%40")}@${version}`, name, sha512];
    });
  const listed = (sbom.components as Component[]).map(({ purl, name, hashes }) => [purl, name, hashes?.[0]?.content]);
  expect(listed.length).toBeGreaterThan(100);
  expect(new Set(listed.map(String))).toEqual(new Set(locked.map(String)));

  const references = [sbom.metadata.component, ...sbom.components].map((component) => component["bom-ref"]).sort();
  const needs = sbom.dependencies as { readonly ref: string; readonly dependsOn: readonly string[] }[];
  expect(needs.map(({ ref }) => ref).sort()).toEqual(references);
  expect(references).toEqual(expect.arrayContaining(needs.flatMap(({ dependsOn }) => dependsOn)));
});

test("a byte that changed is noticed, in whichever file", () => {
  const directory = join(one, "release");
  const check = () => run(directory, "sha256sum --check --quiet SHA256SUMS");
  expect(check()).toEqual({ status: 0, printed: "" });
  for (const name of readdirSync(directory).filter((name) => name !== "SHA256SUMS")) {
    const content = readFileSync(join(directory, name));
    const middle = content.length >> 1;
    writeFileSync(join(directory, name), content.with(middle, (content[middle] ?? 0) ^ 1));
    expect(check()).toEqual({ status: 1, printed: expect.stringContaining(`${name}: FAILED\n`) });
    writeFileSync(join(directory, name), content);
  }
});

test("what is tagged is not released again, here or where the tag was pushed to", () => {
  const tag = `v${version}`;
  expect(lines(other, `git tag --points-at HEAD && git cat-file -t ${tag}`)).toEqual(["tag", tag]);
  expect(run(other, `git push --quiet origin ${tag}`)).toEqual({ status: 0, printed: "" });
  for (const repository of [one, other]) {
    const before = made(repository);
    expect(run(repository, release)).toEqual({
      status: 1,
      printed: expect.stringContaining(`is tagged ${tag} already`),
    });
    expect(made(repository)).toEqual(before);
  }
  lines(one, "git commit --quiet --allow-empty --message 'One more'");
  const expected = { status: 1, printed: expect.stringContaining(`git checkout ${tag}\n`) };
  expect(run(one, `${release} --dry-run`)).toEqual(expected);
});
