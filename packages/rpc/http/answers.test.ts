import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { startOnePort } from "../fixtures/one-port.ts";
import { newAuthority, openFiles, pairOf } from "../fixtures/tls.ts";
import { headOf, tcp, upload } from "../fixtures/upload.ts";
import type { Handler } from "./requests.ts";

const MEGABYTES = 5_000_000;
const large = `${headOf("POST /", { "content-length": MEGABYTES })}\r\n`;
const inChunks = `${headOf("POST /", { "transfer-encoding": "chunked" })}\r\n`;
const chunk = (length: number) => Buffer.from(`${length.toString(16)}\r\n${"x".repeat(length)}\r\n`);

/** Answers without a look at the body. Notes what it is asked. */
function refusing() {
  const asked: string[] = [];
  const refuse: Handler = ({ method }, response) => {
    asked.push(`${method}`);
    response.writeHead(404, { "content-length": 2 }).end("no");
  };
  return { refuse, asked };
}

function http2(url: string): ClientHttp2Session {
  const session = connectHttp2(url);
  onTestFinished(() => session.destroy());
  return session;
}

/** What has come when the stream is closed. An iterator would close it with the end of the answer. */
async function whole(stream: ClientHttp2Stream): Promise<string> {
  let answer = "";
  stream.on("data", (part) => (answer += part));
  await once(stream, "close");
  return answer;
}

const statusesOf = (answers: string) => answers.match(/(?<=HTTP\/1\.1 )\d+/g);

describe("an answer that is there before its request", () => {
  test("says that the connection ends, and is read by a client that first sends everything", async () => {
    const { port } = await startOnePort(refusing().refuse);
    const answer = await upload(tcp(port), large, Buffer.alloc(MEGABYTES));
    expect(answer).toMatch(/^HTTP\/1\.1 404 [\s\S]*\r\nconnection: close\r\n[\s\S]*\r\n\r\nno$/i);
  });

  test("also over TLS", async () => {
    const authority = await newAuthority();
    const { certificates } = await openFiles(await pairOf(authority));
    const { port } = await startOnePort(refusing().refuse, {}, { tls: { certificates } });
    const socket = connectTls({ port, host: "127.0.0.1", ca: authority.cert });
    onTestFinished(() => void socket.destroy());
    expect(await upload(socket, large, Buffer.alloc(MEGABYTES))).toMatch(/^HTTP\/1\.1 404 [\s\S]*\r\n\r\nno$/);
  });

  test("is not the last where the next request has begun: that one would be carried out and not answered", async () => {
    const asked: string[] = [];
    const { port } = await startOnePort(({ method }, response) => {
      asked.push(`${method}`);
      const refused = { "content-length": 2, connection: "close" };
      // Both requests are read in one turn of the event loop, and answered in the next.
      setImmediate(() => response.writeHead(413, method === "PUT" ? refused : { "content-length": 2 }).end("no"));
    });
    const two = `${headOf("PUT /", { "content-length": 1 })}\r\nx${headOf("POST /", { "content-length": 0 })}\r\n`;
    const socket = tcp(port);
    socket.write(two);
    let answers = "";
    for await (const part of socket) {
      answers += part;
      if (answers.split("\r\n\r\nno").length > 2) break;
    }
    expect(statusesOf(answers)).toHaveLength(asked.length);
    expect(asked).toEqual(["PUT", "POST"]);
  });

  test("says that it is the last, and what follows later is not carried out", async () => {
    const asked: string[] = [];
    const { port } = await startOnePort(({ method }, response) => {
      asked.push(`${method}`);
      response.writeHead(404, { "content-length": 2, connection: "close" });
      setTimeout(() => response.end("no"), 100);
    });
    const socket = tcp(port);
    socket.write(`${headOf("GET /", {})}\r\n`);
    await once(socket, "data");
    socket.write(`${headOf("POST /", { "content-length": 0 })}\r\n`);
    await text(socket);
    expect(asked).toEqual(["GET"]);
  });

  test("is whole before the body is there", async () => {
    const { port } = await startOnePort(refusing().refuse);
    const socket = tcp(port);
    socket.write(large);
    let answer = "";
    for await (const part of socket) {
      answer += part;
      if (answer.endsWith("\r\n\r\nno")) break;
    }
    expect(statusesOf(answer)).toEqual(["404"]);
  });

  test("counts as ended for whoever has ended it", async () => {
    const ended = Promise.withResolvers<boolean>();
    const { port } = await startOnePort((_, response) => ended.resolve(response.end("no").writableEnded));
    tcp(port).write(large);
    expect(await ended.promise).toBe(true);
  });

  test.each<[string, Handler]>([
    ["at once", (_, response) => void response.writeHead(404, { "content-length": 2 }).end("no")],
    ["in parts", (_, response) => void (response.writeHead(404).write("n") && response.end("o"))],
  ])("waits for the rest where little is to come, and keeps the connection: %s", async (_, refuse) => {
    const asked: string[] = [];
    const { port, url } = await startOnePort((request, response) => {
      asked.push(`${request.method}`);
      return refuse(request, response);
    });
    const socket = tcp(port);
    let answers = "";
    socket.on("data", (part) => (answers += part));
    socket.write(`${headOf("POST /", { "content-length": 3 })}\r\nab`);
    await expect.poll(() => asked).toEqual(["POST"]);
    await text(http2(url).request({ ":path": "/" }));
    expect(answers).toBe("");
    socket.write(`c${headOf("DELETE /", { connection: "close" })}\r\n`);
    await once(socket, "end");
    expect(statusesOf(answers)).toEqual(["404", "404"]);
    expect(answers).toMatch(/\r\nconnection: keep-alive\r\n/i);
    expect(asked).toEqual(["POST", "GET", "DELETE"]);
  });

  test("that goes on waits for nothing", async () => {
    const { port } = await startOnePort((_, response) => void response.writeHead(200).write("a"));
    const socket = tcp(port);
    socket.write(`${headOf("POST /", { "content-length": 3 })}\r\nab`);
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("is the last one where it says so", async () => {
    const { refuse, asked } = refusing();
    const { port } = await startOnePort(refuse);
    const socket = tcp(port);
    const answers = text(socket);
    socket.write(inChunks);
    socket.write(chunk(10));
    socket.write(`0\r\n\r\n${headOf("DELETE /")}\r\n`);
    expect(statusesOf(await answers)).toEqual(["404"]);
    expect(asked).toEqual(["POST"]);
  });

  test("ends the connection of a client that sends without end", async () => {
    const { port } = await startOnePort(refusing().refuse, { requestMs: 2 ** 30 });
    const socket = tcp(port).on("error", () => {});
    const closed = new Promise((resolve) => socket.resume().once("close", resolve));
    socket.write(inChunks);
    const more = () => {
      while (socket.writable && socket.write(chunk(1024 * 1024)));
    };
    socket.on("drain", more);
    more();
    await closed;
  });

  test("ends the connection of a client that sends nothing more, without a second answer", async () => {
    const { port } = await startOnePort(refusing().refuse, { requestMs: 100 });
    const socket = tcp(port).on("error", () => {});
    socket.write(large);
    expect(statusesOf(await text(socket))).toEqual(["404"]);
  });

  test("is not followed by a second one where its request breaks", async () => {
    const begun = Promise.withResolvers<ServerResponse>();
    const { port } = await startOnePort((_, response) => {
      response.write("a");
      begun.resolve(response);
    });
    const socket = tcp(port).on("error", () => {});
    const answers = text(socket);
    socket.write(inChunks);
    await begun.promise;
    socket.write("zz\r\n");
    expect(statusesOf(await answers)).toEqual(["200"]);
  });

  test("resets no stream of HTTP/2: its client may send the rest", async () => {
    const { url } = await startOnePort(refusing().refuse);
    const session = http2(url);
    const stream = session.request({ ":method": "POST" });
    stream.end(Buffer.alloc(MEGABYTES));
    expect(await whole(stream)).toBe("no");
    expect(session.socket.bytesWritten).toBeGreaterThan(MEGABYTES);
  });

  test("also where the handler has begun to read", async () => {
    const { url } = await startOnePort((request, response) => {
      request.once("readable", () => {
        request.on("readable", () => {}).read();
        response.end("enough");
      });
    });
    const session = http2(url);
    const stream = session.request({ ":method": "POST" });
    stream.end(Buffer.alloc(MEGABYTES));
    expect(await whole(stream)).toBe("enough");
    expect(session.socket.bytesWritten).toBeGreaterThan(MEGABYTES);
  });

  test("ends the stream of HTTP/2 of a client that sends without end, and no other", async () => {
    const { url } = await startOnePort(refusing().refuse, { requestMs: 2 ** 30 });
    const session = http2(url);
    const stream = session.request({ ":method": "POST" }).on("error", () => {});
    const more = () => {
      while (!stream.destroyed && stream.write(Buffer.alloc(1024 * 1024)));
    };
    stream.on("drain", more).resume();
    more();
    await new Promise((resolve) => stream.once("close", resolve));
    expect(await text(session.request({ ":path": "/" }))).toBe("no");
  });
});

test("what is refused without a request is read by a client that first sends everything", async () => {
  const { port } = await startOnePort(refusing().refuse);
  expect(await upload(tcp(port), "no HTTP\r\n\r\n", Buffer.alloc(MEGABYTES))).toMatch(/^HTTP\/1\.1 400 /);
});

describe("100 Continue", () => {
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
});
