/**
 * Spares a process what MongoDB's driver loads and it does not need: 5 MB and 30 ms of a start. To be imported before the
 * driver, whose files look for what they require in Node's cache of modules first
 * (https://nodejs.org/api/modules.html#requirecache: "Adding or replacing entries is also possible").
 */
import Module, { createRequire } from "node:module";

const ofDriver = createRequire(createRequire(import.meta.url).resolve("mongodb"));
const ofConnectionString = createRequire(ofDriver.resolve("mongodb-connection-string-url"));

/** What requires a package gets this instead, unless the package is loaded already. */
function standIn(require: NodeJS.Require, name: string, exports: object): void {
  const file = require.resolve(name);
  require.cache[file] ??= Object.assign(new Module(file), { loaded: true, exports });
}

// Tables of all characters, which passwords need alone (SCRAM-SHA-256).
standIn(ofDriver, "@mongodb-js/saslprep", {
  saslprep(password: string): string {
    delete ofDriver.cache[ofDriver.resolve("@mongodb-js/saslprep")];
    return ofDriver("@mongodb-js/saslprep").saslprep(password);
  },
});
// Node has it, too.
standIn(ofConnectionString, "whatwg-url", { URL, URLSearchParams });
