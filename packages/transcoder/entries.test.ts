/** The entries of the package give these names and no others: each one more would have to be kept for those who import it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const { exports } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));

test.each([
  ["./descriptors", ["filesBelow"]],
  ["./errors", ["codeNamed", "codeOf", "nameOf", "reasonsOf", "statusOf"]],
  ["./excerpt", ["MAX_ERROR_BYTES", "excerpt", "firstOf", "joinFirst"]],
  [
    "./http",
    [
      "NO_PROXY",
      "hostInTarget",
      "hostProblem",
      "isCharset",
      "isGone",
      "isUtf8",
      "parseType",
      "readBody",
      "splitTarget",
      "transferProblem",
      "weakTagAdvice",
      "withBrackets",
      "writeResponse",
    ],
  ],
  [
    "./request-id",
    ["REQUEST_ID_HEADER", "REQUEST_ID_PATTERN", "isRequestId", "newRequestId", "newWorkId", "requestIdOf"],
  ],
  ["./validation", ["prepareValidation", "validate", "violationsToProto"]],
])("%s", async (entry, names) => {
  expect(Object.keys(await import(join(import.meta.dirname, exports[entry]))).sort()).toEqual(names);
});
