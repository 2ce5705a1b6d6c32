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

const isTest = (path: string) => /\.test\.ts$|\/(fixtures|testdata|conformance|example)\/|conformance\.ts$/.test(path);
const transcoder = JSON.parse(readFileSync("packages/transcoder/package.json", "utf8"));
const exported: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries<string>(transcoder.exports).map(([name, file]) => [name, `packages/transcoder/${file.slice(2, -3)}`]),
);

const sources: Source[] = globSync(
  "{packages,processes,services,gateway,launcher,console,examples,doctor}/**/*.{ts,tsx}",
)
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
  const ours = name
    .replace(/^@petstore\//, "packages/")
    .replace(
      /^connect-transcoder(?:\/(?!gen\/).+)?$/,
      (name) => exported[name.replace("connect-transcoder", ".")] ?? name,
    )
    .replace(/^connect-transcoder\//, "packages/transcoder/")
    .replace(/\.js$/, "");
  return ours.startsWith("packages/")
    ? `${ours}.ts`
    : name.replace(/^#proto\//, "proto/gen/").replace(/^#errors$/, "processes/errors.ts");
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
  expect(sources.find(({ path }) => path === "services/create.ts")?.imports).toContain("services/pet/service.ts");
  expect(sources.find(({ path }) => path === "services/pet/service.ts")?.imports).toContain(
    "services/records/idempotency-keys.ts",
  );
});

describe("layers", () => {
  const service = /^services\/(?!records\/)\w+\//;
  test("a service knows no other service", () => {
    const own = (path: string) => service.exec(path)?.[0];
    expect(offenders(service, (name, { path }) => service.test(name) && own(name) !== own(path))).toEqual([]);
  });
  test("what all records share knows none of them", () => {
    expect(offenders(/^services\/records\//, (name) => service.test(name) || name.startsWith("gateway"))).toEqual([]);
  });
  test("the gateway knows no service and no store", () => {
    expect(offenders(/^gateway\//, (name) => /^(services|packages\/store)\//.test(name))).toEqual([]);
  });
  test("what processes have in common knows none of them", () => {
    expect(offenders(/^processes\//, (name) => /^(services|gateway|launcher)\//.test(name))).toEqual([]);
  });
  test("packages know nothing of what is built of them", () => {
    const above = /^(services|gateway|launcher|processes)\//;
    expect(offenders(/^packages\//, (name) => above.test(name))).toEqual([]);
  });
  test("packages know nothing of pets", () => {
    expect(offenders(/^packages\//, (name) => name.startsWith("proto/gen/"))).toEqual([]);
  });
  test("the RPC package has no word of pets", () => {
    const found = sources.filter(({ text }) => /pet/i.test(text.replaceAll("@petstore/", "")));
    expect(found.map(({ path }) => path).filter((path) => path.startsWith("packages/rpc/"))).toEqual([]);
  });
  test("the client knows nothing but the contract, and nobody but its users knows it", () => {
    const own = (path: string) => path.startsWith("packages/client/");
    expect(
      offenders(
        /^packages\/client\/(?!example\/)/,
        (name) => !own(name) && !/^@(bufbuild\/protobuf|connectrpc\/)/.test(name),
      ),
    ).toEqual([]);
    expect(offenders(/^(?!packages\/(client|testing)\/|launcher\/for-tests\.ts$|console\/)/, own)).toEqual([]);
  });
  test("the console knows the client and what it is drawn with, and nobody knows it", () => {
    const own = (path: string) => path.startsWith("console/");
    const known =
      /^(packages\/client(\.ts|\/(events|petstore)\.ts|\/gen\/.*)|preact(\/hooks)?|@preact\/signals|@bufbuild\/protobuf(\/\w+)?|@connectrpc\/connect)$/;
    expect(offenders(/^console\//, (name) => !own(name) && !known.test(name))).toEqual([]);
    expect(offenders(/^(?!console\/)/, own)).toEqual([]);
  });
  test("an example knows what its readers have: packages, and code generated from the contract", () => {
    const inside = /^(services|gateway|launcher|processes|packages\/\w+\/)/;
    expect(offenders(/^examples\//, (name) => inside.test(name))).toEqual([]);
    expect(offenders(/^(?!examples\/)/, (name) => name.startsWith("examples/"))).toEqual([]);
  });
  test("nobody knows the doctor but for its metric, and its rules do no I/O", () => {
    expect(offenders(/^(?!doctor\/)/, (name) => name.startsWith("doctor/"))).toEqual([
      "services/open.ts -> doctor/watching.ts",
    ]);
    const pure =
      /^(doctor\/(findings|mending|rules\/\w+)|services\/\w+\/\S+|processes\/names|packages\/store\/port)\.ts$/;
    expect(offenders(/^doctor\/rules\//, (name) => !pure.test(name))).toEqual([]);
  });
  test("packages know each other in one direction", () => {
    // The command is built of the transcoder and the port that everything here has, and is packed as one file.
    const packageOf = (path: string) => /^packages\/(transcoder\/command|\w+)\//.exec(path)?.[1];
    const known: Record<string, readonly string[]> = {
      "transcoder/command": ["metrics", "rpc", "runtime", "trace", "transcoder"],
      rpc: ["metrics", "runtime", "trace", "transcoder"],
      trace: ["runtime"],
      testing: ["client"],
    };
    const isForeign = (name: string, { path }: Source) => {
      const [from, to] = [packageOf(path) ?? "", packageOf(name)];
      return to !== undefined && to !== from && !known[from]?.includes(to);
    };
    expect(offenders(/^packages\//, isForeign)).toEqual([]);
  });
  test("the launcher starts processes and knows nothing of what is in them, but takes the directory of their files, and holds all of them in one", () => {
    const one = "single-process|for-tests";
    const inside = /^(services|gateway|packages\/(?!runtime\/|store\/directory\.ts$))\/?/;
    expect(offenders(new RegExp(`^launcher/(?!(${one})\\.ts$)`), (name) => inside.test(name))).toEqual([]);
  });
});

describe("storage", () => {
  test("only an engine knows its database", () => {
    expect(offenders(/^(?!packages\/store\/mongo\/)/, (name) => name === "mongodb")).toEqual([]);
    expect(offenders(/^(?!packages\/store\/sqlite\/)/, (name) => name === "node:sqlite")).toEqual([]);
  });
  test("only one file chooses an engine", () => {
    const engine = /^packages\/store\/(sqlite\/sqlite|memory\/memory|mongo\/mongo)\.ts$/;
    expect(offenders(/^(?!packages\/store\/open\.ts$|launcher\/for-tests\.ts$)/, (name) => engine.test(name))).toEqual(
      [],
    );
  });
  test("outside the store only the port and the schemas of documents are known, and the places that open it or take its directory", () => {
    const inside = /^packages\/store\/(?!(port|document-schema)\.ts$)/;
    const found = offenders(/^(?!packages\/store\/)/, (name) => inside.test(name));
    expect(found.toSorted()).toEqual([
      "doctor/look.ts -> packages/store/rows.ts",
      "doctor/reading.ts -> packages/store/rows.ts",
      "doctor/stores.ts -> packages/store/directory.ts",
      "doctor/stores.ts -> packages/store/open.ts",
      "doctor/stores.ts -> packages/store/rows.ts",
      "launcher/config.ts -> packages/store/directory.ts",
      "launcher/for-tests.ts -> packages/store/memory.ts",
      "services/open.ts -> packages/store/open.ts",
      "services/stored.ts -> packages/store/rows.ts",
    ]);
  });
});

test("OpenTelemetry is known where it is loaded on demand, and nowhere else", () => {
  const own = (name: string) => name.startsWith("@opentelemetry/");
  expect(offenders(/^(?!packages\/trace\/sdk\.ts$)/, own)).toEqual([]);
  const loaded = (name: string) => name === "packages/trace/sdk.ts";
  expect(offenders(/^(?!packages\/trace\/tracing\.ts$)/, loaded)).toEqual([]);
});

describe("purity", () => {
  test("rules do no I/O and know no transport", () => {
    const pure =
      /^(services\/records\/(errors|record)\.ts|packages\/store\/port\.ts|services\/\w+\/model\.ts|proto\/gen\/petstore\/.*)$/;
    expect(offenders(/^services\/.*rules\.ts$/, (name) => !pure.test(name))).toEqual([]);
  });
  test("RPC errors are made where calls come in and go out, and nowhere in a service", () => {
    expect(
      holders(/new ConnectError\(/).filter(
        (path) => !/^(packages\/(rpc|transcoder\/(command|server))|gateway)\//.test(path),
      ),
    ).toEqual([]);
  });
  test("the environment is read by config and handed over by entry files", () => {
    const allowed =
      /^(\w+\/config|(services|gateway|launcher|doctor|packages\/testing)\/main|launcher\/for-tests|packages\/testing\/index|packages\/transcoder\/command\/main|examples\/.*)\.ts$/;
    expect(holders(/process\.env/).filter((path) => !allowed.test(path))).toEqual([]);
  });
  test("time, chance and timers are handed in below the entry files", () => {
    const found = holders(/Date\.now|Math\.random|new Date\(\)|performance\.now/).filter((path) =>
      /^(packages\/(?!runtime\/clock\.ts|transcoder\/server\/options\.ts|client\/petstore\.ts)|services\/)/.test(path),
    );
    expect(found).toEqual([]);
  });
  test("HTTP statuses are the gateway's and the contract's", () => {
    expect(
      holders(/httpStatus|statusCode/).filter((path) => /^(services|packages\/(store|runtime))\//.test(path)),
    ).toEqual([]);
  });
});
