/** What becomes known of a case by its answers. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Subject } from "../subject.ts";
import { http } from "./http.ts";

/** Sends a POST to who answers with this, whatever it is asked. */
async function sentTo(status: number, code: string) {
  const body = JSON.stringify({ code, message: "wrong", status });
  const head = "x-request-id: a\r\napi-version: 1.0.0\r\ncontent-type: application/json\r\nconnection: close\r\n";
  const server = createServer((socket) => {
    socket.resume().end(`HTTP/1.1 ${status} Text\r\n${head}content-length: ${body.length}\r\n\r\n${body}`);
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const request = { verb: "POST", target: "/pets", version: "HTTP/1.1", headers: [] };
  return http.send({ requests: [request] }, { port: () => port, credentials: {} } as unknown as Subject);
}

test("what is refused is not done any more", async () => {
  expect(await sentTo(404, "PET_NOT_FOUND")).toMatchObject({ isAnswered: true, isRefused: true, writes: true });
});

test.each([
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
])("what is answered %i may still be done", async (status, code) => {
  expect(await sentTo(status, code)).toMatchObject({ isAnswered: false, isRefused: false, writes: true });
});
