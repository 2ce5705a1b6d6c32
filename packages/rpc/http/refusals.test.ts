import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { startOnePort } from "../fixtures/one-port.ts";

test.each([
  ["gzip, chunked", 501],
  ["identity, chunked", 501],
  ["gzip\r\ntransfer-encoding: chunked", 501],
  ["Chunked", 200],
])("a body in the transfer coding %s is %i", async (coding, status) => {
  let read = "";
  const { port } = await startOnePort(async (request, response) => {
    read = await text(request);
    response.end("served");
  });
  const socket = connect(port, "127.0.0.1");
  const last = status === 501 ? "" : "connection: close\r\n";
  socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${last}transfer-encoding: ${coding}\r\n\r\n2\r\nhi\r\n0\r\n\r\n`);
  const answer = await text(socket);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer).toMatch(/^connection: close\r$/im);
  if (status === 501) expect(answer).toMatch(/nosniff[\s\S]*Transfer-Encoding: the only coding is chunked\./);
  expect(read).toBe(status === 501 ? "" : "hi");
});
