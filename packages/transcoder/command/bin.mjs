#!/usr/bin/env node
// What `npx connect-transcoder` runs first. Plain JavaScript that old versions of Node can read too: they get a sentence
// instead of an error of syntax or of a function that is missing.
const { node } = process.versions;

if (Number.parseInt(node, 10) < 22)
  fail(
    `this is Node ${node}, and the command needs 22 or newer. Install one from https://nodejs.org/en/download, or for this project alone: npm install node@22`,
  );
else
  import("./main.ts").catch((error) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    // npm installs them by itself, others don't.
    fail(
      `${error.message}. Install what the command needs: npm install fastify @connectrpc/connect @connectrpc/connect-node @bufbuild/protobuf`,
    );
  });

function fail(message) {
  process.stderr.write(`connect-transcoder: ${message}\n`);
  process.exitCode = 1;
}
