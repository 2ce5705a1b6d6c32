/**
 * Keeps MongoDB's driver from loading what a process does not need: 5 MB and 30 ms of a start. Must be imported before
 * the driver, whose files look in Node's module cache first for what they require
 * (https://nodejs.org/api/modules.html#requirecache: "Adding or replacing entries is also possible").
 */
import Module, { createRequire } from "node:module";

const ofDriver = createRequire(createRequire(import.meta.url).resolve("mongodb"));
const ofConnectionString = createRequire(ofDriver.resolve("mongodb-connection-string-url"));

/** Makes `require` of a package return these exports instead, unless the package is loaded already. */
function standIn(require: NodeJS.Require, name: string, exports: object): void {
  const file = require.resolve(name);
  require.cache[file] ??= Object.assign(new Module(file), { loaded: true, exports });
}

/** The package itself, which from then on `require` returns. */
function load(require: NodeJS.Require, name: string) {
  delete require.cache[require.resolve(name)];
  return require(name);
}

// Its character tables are needed for passwords only (SCRAM-SHA-256), so it is loaded on first use.
standIn(ofDriver, "@mongodb-js/saslprep", {
  saslprep: (password: string): string => load(ofDriver, "@mongodb-js/saslprep").saslprep(password),
});
// Node has these built in. For whoever else may need the rest of the package in this process, it is loaded.
const builtIn: Readonly<Record<string | symbol, unknown>> = { URL, URLSearchParams };
standIn(
  ofConnectionString,
  "whatwg-url",
  new Proxy(builtIn, { get: (_, name) => builtIn[name] ?? load(ofConnectionString, "whatwg-url")[name] }),
);
