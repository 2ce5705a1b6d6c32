/** Links that are lost: of what was sent nobody knows, what was not sent never ran. */
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { neverRan } from "../client/failed-call.ts";
import { ask, askAll, clientOf, failureOf, failures, hello, openTo, startRawService } from "../fixtures/linked.ts";

const answerTo = (id: number) => ({ id, outcome: { case: "message" as const, value: new Uint8Array() } });

test("a service that dies in the middle leaves what it has not answered in doubt, and only that", async () => {
  const url = await startRawService(async (link) => {
    link.send(hello);
    await link.count(2);
    link.send({ answers: [answerTo(2)] });
    setImmediate(() => link.stream.session?.destroy());
  });
  const results = await askAll(clientOf(openTo(url)), 3);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
  expect(failures(results).map((error) => [error.code, neverRan(error)])).toEqual([
    [Code.Unavailable, false],
    [Code.Unavailable, false],
  ]);
});

test("a link that ends without all answers leaves the others in doubt", async () => {
  const url = await startRawService(async (link) => {
    link.send(hello);
    await link.count(2);
    link.send({ answers: [answerTo(1)] });
    link.stream.end();
  });
  const results = await askAll(clientOf(openTo(url)), 2);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(failures(results).map(neverRan)).toEqual([false]);
});

test.each([
  ["is reset", (stream: { close(code: number): void }) => stream.close(2)],
  ["is cut off", (stream: { session?: { destroy(): void } | undefined }) => stream.session?.destroy()],
])("before the service has said hello nothing was sent: a link that %s is no doubt", async (_, end) => {
  const url = await startRawService(({ stream }) => end(stream));
  const results = await askAll(clientOf(openTo(url)), 2);
  expect(failures(results).map((error) => [error.code, neverRan(error)])).toEqual([
    [Code.Unavailable, true],
    [Code.Unavailable, true],
  ]);
});

test("the next call gets another link", async () => {
  const url = await startRawService(async (link, n) => {
    link.send(hello);
    await link.count(2);
    if (n === 0) link.stream.close(2);
    else link.send({ answers: [answerTo(1)] });
  });
  const client = clientOf(openTo(url));
  expect(neverRan(await failureOf(ask(client, 1)))).toBe(false);
  expect(await ask(client, 2)).toBeDefined();
});
