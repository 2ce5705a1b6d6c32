import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { mongodReporter } from "./test/harness/missing-tools-reporter.ts";

/** The engine that the whole petstore is tested on, when it is not the embedded one. */
const store = process.env.PETSTORE_TEST_STORE;
if (store && store !== "mongodb") throw new Error("PETSTORE_TEST_STORE is wrong: it can only be mongodb.");
/** All that it can change. The tests of single parts, those that bring their own MongoDB, and those of alerts would say the same again. */
const wholePetstore = () =>
  globSync("test/{api,attacks,faults,traces}/*.test.ts").filter(
    (path) =>
      !/(alerts|failover)\.test\.ts$/.test(path) &&
      /start(Petstore|Traced)\((?!\{ replicas)/.test(readFileSync(path, "utf8")),
  );

const besideTheCode =
  "{packages,processes,proto,services,gateway,launcher,scripts,backup,bench,console,demo,doctor,monitoring}/**/*";

export default defineConfig({
  test: {
    // Generous: the tests must pass on a slow machine, and none of them measures time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // More than there are cores: much of the time is waiting, for elections, for pauses, for processes that start.
    maxWorkers: availableParallelism() + 1,
    reporters: ["default", mongodReporter(), ...(process.env.CI === "true" ? ["json"] : [])],
    outputFile: { json: `node_modules/.cache/tests/${store ?? "all"}.json` },
    // Run in the order of their names: no long file is left running alone at the end.
    projects: [
      {
        extends: true,
        test: {
          name: "processes",
          include: store ? wholePetstore() : ["test/**/*.test.ts", `${besideTheCode}.process.test.ts`],
          globalSetup: store ? ["test/harness/one-mongodb.ts"] : [],
        },
      },
      {
        extends: true,
        test: {
          name: "unit",
          include: store ? [] : [`${besideTheCode}.test.ts`],
          exclude: ["**/*.process.test.ts", "**/node_modules/**"],
          setupFiles: ["test/harness/no-processes.ts"],
        },
      },
    ],
  },
});
