import { expect, test } from "vitest";
import { explain, ListenError } from "./listen.ts";

const failed = (code: string) => explain(Object.assign(new Error(`listen ${code}`), { code }), "10.0.0.1", 80);

test.each([
  ["EADDRINUSE", /port 80 is taken.*PORT_BASE=9080/],
  ["EACCES", /port 80 needs privileges.*PORT or PORT_BASE/],
  ["EADDRNOTAVAIL", /HOST=10\.0\.0\.1 is no address of this machine.*HOST=127\.0\.0\.1/],
  ["ENOTFOUND", /HOST=10\.0\.0\.1 is no name/],
])("%s says what to do", (code, words) => {
  const error = failed(code) as Error;
  expect(error).toBeInstanceOf(ListenError);
  expect(error.message).toMatch(words);
  expect(error.message).not.toContain("\n");
});

test("what nobody foresaw is left as it is", () => {
  expect(failed("EMFILE")).toMatchObject({ message: "listen EMFILE" });
});
