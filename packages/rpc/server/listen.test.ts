import { createServer } from "node:net";
import { expect, test } from "vitest";
import { ListenError, listen } from "./listen.ts";

const host = "127.0.0.1";

test("a port that is taken is refused in one line with the operator's advice", async () => {
  await using taken = createServer();
  const port = await listen(taken, { host, port: 0 });
  const advice = (code: string, host: string, port: number) => `${code} of ${host} and ${port}.`;
  const error = await listen(createServer(), { host, port }, advice).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as Error).message).toBe(`Can't listen on 127.0.0.1:${port}: EADDRINUSE of 127.0.0.1 and ${port}.`);
});

test("an error without advice is left as it is", async () => {
  await using taken = createServer();
  const port = await listen(taken, { host, port: 0 });
  const none = () => undefined;
  await expect(listen(createServer(), { host, port }, none)).rejects.toMatchObject({ code: "EADDRINUSE" });
  await expect(listen(createServer(), { host, port })).rejects.toMatchObject({ code: "EADDRINUSE" });
});

test("a port is shared only by those that all say so", async () => {
  await using first = createServer();
  const port = await listen(first, { host, port: 0, reusePort: true });
  await using second = createServer();
  expect(await listen(second, { host, port, reusePort: true })).toBe(port);
  await expect(listen(createServer(), { host, port })).rejects.toMatchObject({ code: "EADDRINUSE" });
});
