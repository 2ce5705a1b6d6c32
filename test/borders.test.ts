/** Who may know whom. The rules stand in docs/architecture.md; this reads every import and holds them to it. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";

interface Source {
  readonly path: string;
  readonly text: string;
  /** Paths from the root for what is ours, names for packages. */
  readonly imports: readonly string[];
}

const isTest = (path: string) =>
  /\.test\.ts$|\/fixtures\/|\/testdata\/|\/conformance\/|conformance\.ts$|crash-child/.test(path);
const sources: Source[] = globSync("{services,gateway,launcher}/**/*.ts")
  .concat("start.ts")
  .filter((path) => !isTest(path))
  .map((path) => {
    const text = readFileSync(path, "utf8");
    const names = [
      ...text.matchAll(
        /(?:^|\n)(?:import|export)\s[^;]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)|^import\s+"([^"]+)"/g,
      ),
    ];
    return { path, text, imports: names.map(([, a, b, c]) => resolve(path, a ?? b ?? c ?? "")) };
  });

function resolve(from: string, name: string): string {
  if (name.startsWith(".")) return normalize(join(dirname(from), name));
  return name.replace(/^#shared\//, "services/shared/").replace(/^#proto\//, "proto/gen/");
}

/** Files among `who` that import something `forbidden`, as "file -> import". */
const offenders = (who: RegExp, forbidden: (imported: string, source: Source) => boolean) =>
  sources
    .filter(({ path }) => who.test(path))
    .flatMap((source) =>
      source.imports.filter((name) => forbidden(name, source)).map((name) => `${source.path} -> ${name}`),
    );
const holders = (what: RegExp) => sources.filter(({ text }) => what.test(text)).map(({ path }) => path);

test("the imports are really read", () => {
  expect(sources.length).toBeGreaterThan(40);
  expect(sources.find(({ path }) => path === "services/serve.ts")?.imports).toContain("services/pet/service.ts");
  expect(sources.find(({ path }) => path === "services/pet/service.ts")?.imports).toContain("services/shared/keys.ts");
});

describe("layers", () => {
  const service = /^services\/(pet|category|order|inventory)\//;
  test("a service knows no other service", () => {
    const own = (path: string) => service.exec(path)?.[0];
    expect(offenders(service, (name, { path }) => service.test(name) && own(name) !== own(path))).toEqual([]);
  });
  test("what services share knows none of them", () => {
    expect(offenders(/^services\/shared\//, (name) => service.test(name) || name.startsWith("gateway"))).toEqual([]);
  });
  test("the gateway knows no service and no store", () => {
    const shared = /^services\/shared\/(rpc\/|(clock|config|deps|environment|lifecycle|log)\.ts$)/;
    expect(offenders(/^gateway\//, (name) => name.startsWith("services/") && !shared.test(name))).toEqual([]);
  });
  test("the transcoder knows nothing of pets", () => {
    const pets = /proto\/gen\/petstore\/(?!common\/v1\/http_pb)/;
    expect(offenders(/^gateway\/transcoder\//, (name) => pets.test(name))).toEqual([]);
  });
  test("the launcher starts processes and knows nothing of what is in them", () => {
    const known = /^services\/shared\/(config|environment|lifecycle|log|clock|rpc\/listen)\.ts$/;
    expect(
      offenders(/^(launcher\/|start\.ts)/, (name) => /^(services|gateway)\//.test(name) && !known.test(name)),
    ).toEqual([]);
  });
});

describe("storage", () => {
  test("only an engine knows its database", () => {
    expect(offenders(/^(?!services\/shared\/store\/mongo)/, (name) => name === "mongodb")).toEqual([]);
    expect(offenders(/^(?!services\/shared\/store\/embedded)/, (name) => name === "node:sqlite")).toEqual([]);
  });
  test("only one file chooses an engine", () => {
    const engine = /^services\/shared\/store\/(embedded|memory|mongo)\.ts$/;
    expect(offenders(/^(?!services\/shared\/store\/open\.ts$)/, (name) => engine.test(name))).toEqual([]);
  });
  test("outside the store only the port is known, and the one place that opens it", () => {
    const inside = /^services\/shared\/store\/(?!port\.ts$)/;
    const found = offenders(/^(?!services\/shared\/store\/)/, (name) => inside.test(name));
    expect(found).toEqual(["services/serve.ts -> services/shared/store/open.ts"]);
  });
});

describe("purity", () => {
  test("rules do no I/O and know no transport", () => {
    const pure =
      /^(services\/shared\/(errors|record|store\/port)\.ts|services\/\w+\/(model|order-map)\.ts|proto\/gen\/petstore\/.*)$/;
    expect(offenders(/^services\/.*rules\.ts$/, (name) => !pure.test(name))).toEqual([]);
  });
  test("RPC errors are made where calls come in and go out, and nowhere in a service", () => {
    expect(holders(/new ConnectError\(/).filter((path) => !/^(services\/shared\/rpc|gateway)\//.test(path))).toEqual(
      [],
    );
  });
  test("the environment is read by config and handed over by entry files", () => {
    const allowed = /(config|(services|gateway)\/main|^start)\.ts$/;
    expect(holders(/process\.env/).filter((path) => !allowed.test(path))).toEqual([]);
  });
  test("time, chance and timers are handed in below the entry files", () => {
    const found = holders(/Date\.now|Math\.random|new Date\(\)|performance\.now/).filter((path) =>
      /^services\/(?!shared\/clock\.ts)/.test(path),
    );
    expect(found).toEqual([]);
  });
  test("HTTP statuses are the gateway's and the contract's", () => {
    expect(holders(/httpStatus|statusCode/).filter((path) => path.startsWith("services/"))).toEqual([]);
  });
});
