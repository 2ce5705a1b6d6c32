// What npm scripts load first. Plain JavaScript, as it runs on whatever Node is there.
import { existsSync } from "node:fs";

// One of the packages of this repository, which other installers than npm leave out.
if (!existsSync(new URL("../node_modules/connect-transcoder", import.meta.url))) {
  console.error("The packages that petstore needs are not installed, or not by npm: run `npm ci` first.");
  process.exit(1);
}
