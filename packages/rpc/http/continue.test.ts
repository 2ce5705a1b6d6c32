import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { startOnePort } from "../fixtures/one-port.ts";
import { headOf, tcp } from "../fixtures/upload.ts";
import type { Handler } from "./one-port.ts";

const read: Handler = async (request, response) => void response.end(await text(request));
const refuse: Handler = (_, response) => void response.writeHead(401).end();
const drop: Handler = (request, response) => {
  request.resume();
  response.writeHead(404).end();
};
/** Once its caller is known, which takes a moment. */
const readLater: Handler = async (request, response) => {
  await new Promise(setImmediate);
  request.on("data", () => {}).on("end", () => response.end());
};

const post = headOf("POST /", { "content-length": 2, expect: "100-continue", connection: "close" });

test.each([
  ["reads", read, ["100", "200"]],
  ["reads later", readLater, ["100", "200"]],
  ["refuses", refuse, ["401"]],
  ["drops the body", drop, ["404"]],
])("a handler that %s brings about, over HTTP/1.1", async (_, handler, statuses) => {
  const { port } = await startOnePort(handler);
  const socket = tcp(port).setEncoding("latin1");
  socket.write(`${post}\r\n`);
  let answers = "";
  for await (const part of socket) {
    if (answers === "" && part.startsWith("HTTP/1.1 100 ")) socket.write("{}");
    answers += part;
  }
  expect(answers.match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual(statuses);
});

function http2(url: string): ClientHttp2Session {
  const session = connectHttp2(url);
  onTestFinished(() => session.destroy());
  return session;
}

test.each([
  ["reads", read, [true, 200]],
  ["reads later", readLater, [true, 200]],
  ["refuses", refuse, [false, 401]],
  ["drops the body", drop, [false, 404]],
])("a handler that %s brings about, over HTTP/2", async (_, handler, expected) => {
  const { url } = await startOnePort(handler);
  const stream = http2(url).request({ ":method": "POST", expect: "100-continue" });
  let isContinued = false;
  stream.on("continue", () => {
    isContinued = true;
    stream.end("{}");
  });
  const [headers] = await once(stream, "response");
  expect([isContinued, headers[":status"]]).toEqual(expected);
});

test("a client that doesn't wait for it is served", async () => {
  const { port } = await startOnePort(read);
  const socket = tcp(port);
  socket.write(`${post}\r\n{}`);
  expect(await text(socket)).toMatch(/HTTP\/1\.1 200 /);
});
