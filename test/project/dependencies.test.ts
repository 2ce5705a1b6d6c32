/** What can be said of the dependencies without asking anybody. `.ci/audit` asks for what is known against them. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
}

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
  readonly packages: Readonly<Record<string, Locked>>;
};
const foreign = Object.entries(packages).filter(([path, { link }]) => path.startsWith("node_modules/") && !link);

test("each is pinned by its hash, and comes from a registry", () => {
  expect(foreign.length).toBeGreaterThan(100);
  const loose = foreign.filter(
    // Without an address it comes from whichever registry npm is told to use, and has to have the same hash.
    ([, { integrity = "", resolved }]) => !/^sha512-[\w+/]{86}==$/.test(integrity) || resolved !== undefined,
  );
  expect(loose).toEqual([]);
});

test("no other than these run anything when they are installed", () => {
  const running = foreign.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
  // The first looks for its own program; the second says something about its version, and is a tool's dependency.
  expect(running).toEqual(["node_modules/@bufbuild/buf", "node_modules/protobufjs"]);
});

test("every version that is asked for is exact, but of the packages here, which are released together", () => {
  const manifests = ["package.json", ...globSync("packages/*/package.json")];
  const own = manifests.map((path) => JSON.parse(readFileSync(path, "utf8")).name);
  for (const path of manifests) {
    const {
      dependencies = {},
      devDependencies = {},
      optionalDependencies = {},
    } = JSON.parse(readFileSync(path, "utf8"));
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }))
      expect([path, name, version]).toEqual([
        path,
        name,
        own.includes(name) ? "*" : expect.stringMatching(/^(npm:.+@)?\d+\.\d+\.\d+(-[\w.]+)?$|^file:/),
      ]);
  }
});
