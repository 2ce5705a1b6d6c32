import { once } from "node:events";
import { createServer as createHttp1, type Server, type ServerResponse } from "node:http";
import { connect as connectHttp2, createServer as createHttp2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { isGone } from "./node-http.ts";

/** Whether the caller of a request is seen to be gone, before it goes and after. */
async function seen(server: Server, goes: (port: number, arrived: Promise<unknown>) => Promise<void>) {
  onTestFinished(() => void server.close());
  const { promise, resolve } = Promise.withResolvers<boolean[]>();
  const arrived = once(server, "request") as Promise<[unknown, ServerResponse]>;
  arrived.then(([, response]) => {
    const before = isGone(response);
    response.once("close", () => setImmediate(() => resolve([before, isGone(response)])));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await goes((server.address() as AddressInfo).port, arrived);
  return promise;
}

test("a caller over HTTP/1.1 that closes its connection is gone", async () => {
  const both = seen(createHttp1(), async (port, arrived) => {
    const socket = connect(port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    await arrived;
    socket.destroy();
  });
  expect(await both).toEqual([false, true]);
});

test("a caller over HTTP/2 that resets its stream is gone", async () => {
  const both = seen(createHttp2() as unknown as Server, async (port, arrived) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    const stream = session.request({ ":path": "/" });
    stream.on("error", () => {});
    await arrived;
    stream.close(8);
  });
  expect(await both).toEqual([false, true]);
});
