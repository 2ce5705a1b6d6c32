/** What `release.ts` may make a release of. */

export interface Tree {
  readonly version: string;
  /** The package.json that have another version. */
  readonly others: readonly string[];
  readonly changelog: string;
  /** The text of Chart.yaml. */
  readonly chart: string;
  /** What `git status --porcelain` lists. */
  readonly changes: readonly string[];
  /** Which commit has the version's tag. */
  readonly tagged: "this" | "another" | "none";
}

/** What is in the way of a release, each with what to do. A tagged commit may be built again, to compare. */
export function obstacles(
  { version, others, changelog, chart, changes, tagged }: Tree,
  dryRun: boolean,
): readonly string[] {
  const latest = /^## (\d\S*)/m.exec(changelog)?.[1] ?? "no version";
  const found: string[] = [];
  if (changes.length > 0)
    found.push(["A release is made of a commit. Commit or remove what is in none:", ...changes].join("\n  "));
  if (others.length > 0)
    found.push(
      `Not of version ${version}, which package.json has: ${others.join(", ")}. Set it everywhere: ` +
        `npm version ${version} --workspaces --include-workspace-root --no-git-tag-version --allow-same-version`,
    );
  if (!["version", "appVersion"].every((name) => chart.includes(`\n${name}: ${version}\n`)))
    found.push(
      `charts/petstore/Chart.yaml is not of version ${version}, which package.json has. ` +
        "Set its version and appVersion by hand; then .ci/helm && .ci/chart --write",
    );
  if (latest !== version)
    found.push(
      `package.json has version ${version}, and CHANGELOG.md begins with ${latest}. Put what is new below ` +
        `"## ${version} - <date>", the first section after "## Unreleased", or set the version of package.json.`,
    );
  if (!dryRun && /^## Unreleased\n(?:(?!## ).*\n)*?- /m.test(changelog))
    found.push(`CHANGELOG.md has lines below "## Unreleased": what is in this release belongs below "## ${version}".`);
  if (tagged === "another")
    found.push(
      `The tag v${version} is at another commit. Set a higher version; or, to build that release again: git checkout v${version}`,
    );
  if (tagged === "this" && !dryRun)
    found.push(
      `This commit is tagged v${version} already. To build it again, and compare: npm run release -- --dry-run`,
    );
  return found;
}

/** A version's section of the changelog, as a page. */
export function notesOf(changelog: string, version: string): string {
  const section = changelog.split(/^## /m).find((text) => text.startsWith(`${version} `)) ?? version;
  return `# petstore ${section.trimEnd()}\n`;
}
