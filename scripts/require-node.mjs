// Preloaded by every npm script that runs TypeScript: an older Node would stop at the first type annotation with a
// syntax error that explains nothing. Plain JavaScript on purpose.
import "./require-packages.mjs";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 24 || (major === 24 && minor < 12)) {
  console.error(
    `petstore needs Node 24.12 or newer to run TypeScript as it is; this is Node ${process.versions.node}.\n` +
      "`npm ci` normally brings the right one along, but has none for this platform. Install a newer Node: https://nodejs.org/en/download",
  );
  process.exit(1);
}
