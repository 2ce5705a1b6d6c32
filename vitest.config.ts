import { defineConfig } from "vitest/config";
import { mongodReporter } from "./test/mongod-reporter.ts";

export default defineConfig({
  test: {
    include: ["{proto,services,gateway,launcher,scripts,test}/**/*.test.ts"],
    // Generous: the tests must pass on a slow machine, and none of them measures time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ["default", mongodReporter(), ...(process.env.CI === "true" ? ["json"] : [])],
    outputFile: { json: "node_modules/.cache/tests/results.json" },
  },
});
