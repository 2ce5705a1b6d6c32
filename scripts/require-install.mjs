// Preloaded by the npm scripts that run what `npm ci` has made, if it was allowed to. Plain JavaScript on purpose: without the
// installation's scripts, npm may not have linked the Node that it brought along.
import "./require-packages.mjs";
import { existsSync } from "node:fs";

// Made last of all.
if (!existsSync(new URL("../console/dist/index.html", import.meta.url))) {
  console.error(
    "The generated code is missing, as it is after `npm ci --ignore-scripts`: make it with `npm run prepare`.",
  );
  process.exit(1);
}
await import("./require-node.mjs");
