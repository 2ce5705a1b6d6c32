/** The tools for examples in other languages and for generators of clients; `.ci/examples` installs them. */
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

const cache = join(import.meta.dirname, "../../node_modules/.cache");

/** For `test.skipIf(...)`: the reporter mentions it, and with CI=true the run fails before it starts. */
export const exampleToolsMissing = !existsSync(join(cache, "examples/ready"));

/** Where the npm packages of examples/openapi/typescript are. */
export const TYPESCRIPT = join(cache, "examples/typescript");

/** Where those of test/examples/hey-api are. */
export const HEY_API = join(cache, "examples/hey-api");

/** The PATH with this Node, a Python with the packages of some examples, and a Go compiler if there is no other. */
export const pathFor = (python: "python" | "openapi-python"): string =>
  [
    dirname(process.execPath),
    join(cache, "examples", python, "bin"),
    process.env.PATH ?? "",
    join(cache, "go/bin"),
  ].join(delimiter);
