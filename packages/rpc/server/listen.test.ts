import { createServer } from "node:net";
import { expect, test } from "vitest";
import { ListenError, listen } from "./listen.ts";

test("a port that is taken is refused in one line with the operator's advice", async () => {
  await using taken = createServer();
  const port = await listen(taken, "127.0.0.1", 0);
  const advice = (code: string, host: string, port: number) => `${code} of ${host} and ${port}.`;
  const error = await listen(createServer(), "127.0.0.1", port, advice).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as Error).message).toBe(`Can't listen on 127.0.0.1:${port}: EADDRINUSE of 127.0.0.1 and ${port}.`);
});

test("an error without advice is left as it is", async () => {
  await using taken = createServer();
  const port = await listen(taken, "127.0.0.1", 0);
  const none = () => undefined;
  await expect(listen(createServer(), "127.0.0.1", port, none)).rejects.toMatchObject({ code: "EADDRINUSE" });
  await expect(listen(createServer(), "127.0.0.1", port)).rejects.toMatchObject({ code: "EADDRINUSE" });
});
