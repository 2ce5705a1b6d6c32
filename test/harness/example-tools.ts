/** What examples in other languages and generators of clients need; `.ci/examples` installs it. */
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

const cache = join(import.meta.dirname, "../../node_modules/.cache");

/** For `test.skipIf(...)`: the reporter then says so, and with CI=true the run fails before it starts. */
export const exampleToolsMissing = !existsSync(join(cache, "examples/ready"));

/** Where the npm packages of examples/openapi/typescript are. */
export const TYPESCRIPT = join(cache, "examples/typescript");

/** The PATH with this Node, a Python that has what some examples need, and a Go compiler if there is no other. */
export const pathFor = (python: "python" | "openapi-python"): string =>
  [
    dirname(process.execPath),
    join(cache, "examples", python, "bin"),
    process.env.PATH ?? "",
    join(cache, "go/bin"),
  ].join(delimiter);
