import { createServer } from "node:net";
import { expect, test } from "vitest";
import { explain, ListenError, listen } from "./listen.ts";

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

test("a port that is taken is refused in one line that says what to do", async () => {
  await using taken = createServer();
  const port = await listen(taken, "127.0.0.1", 0);
  const error = await listen(createServer(), "127.0.0.1", port).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as Error).message).toMatch(new RegExp(`^Can't listen on 127\\.0\\.0\\.1:${port}: .*PORT_BASE=.*\\.$`));
});

test("what nobody foresaw is left as it is", () => {
  expect(failed("EMFILE")).toMatchObject({ message: "listen EMFILE" });
});
