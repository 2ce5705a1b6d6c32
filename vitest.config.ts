import { globSync, readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { mongodReporter } from "./test/harness/missing-tools-reporter.ts";

/** The engine that the whole petstore is tested on, when it is not the embedded one. */
const store = process.env.PETSTORE_TEST_STORE;
if (store && store !== "mongodb") throw new Error("PETSTORE_TEST_STORE is wrong: it can only be mongodb.");
/** All that it can change. The tests of single parts, and those that bring their own MongoDB, would say the same again. */
const wholePetstore = () =>
  globSync("test/{api,attacks,faults}/*.test.ts").filter(
    (path) => !path.endsWith("failover.test.ts") && /startPetstore\((?!\{ replicas)/.test(readFileSync(path, "utf8")),
  );

export default defineConfig({
  test: {
    include: store
      ? wholePetstore()
      : ["*.test.ts", "{packages,proto,services,gateway,launcher,scripts,test}/**/*.test.ts"],
    // Generous: the tests must pass on a slow machine, and none of them measures time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ["default", mongodReporter(), ...(process.env.CI === "true" ? ["json"] : [])],
    outputFile: { json: `node_modules/.cache/tests/${store ?? "all"}.json` },
  },
});
