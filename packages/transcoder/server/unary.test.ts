/** Calls that end at their deadline. */
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { compileLibrary, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";

test.each([
  [60_000, 504, "DEADLINE_EXCEEDED"],
  [0, 503, "UNAVAILABLE"],
])("a call that the service resets after %i ms", async (laterMs, status, code) => {
  const desc = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
  let now = Date.now();
  const unary = async () => {
    now += laterMs;
    throw new ConnectError("http/2 stream closed with error code CANCEL (0x8)", Code.Canceled);
  };
  const services = [{ desc, transport: { unary } as never }];
  const { app, call } = await serve(desc, {}, { services, clock: () => now });
  const answer = await call("/books/1");
  expect([answer.status, answer.record().code]).toEqual([status, code]);
  await app.close();
});
