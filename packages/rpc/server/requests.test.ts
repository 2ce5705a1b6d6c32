/** How the RPC server handles HTTP itself: targets, hosts, timeouts, and unknown RPCs. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Code, createClient } from "@connectrpc/connect";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { startCategories, transports } from "../fixtures/categories.ts";
import { envelope } from "../fixtures/envelope.ts";
import { END_HEADERS, END_STREAM, type Field, FrameType, frame, headers, rawHttp2 } from "../fixtures/frames.ts";

/** `:status` as HPACK's static table has it (RFC 7541, appendix A). */
const [INDEXED_200, INDEXED_400] = [0x88, 0x8c];

const started = () => startCategories(async (name) => name);

test("an unknown path is a short 404", async () => {
  const { url } = await started();
  const answer = await fetch(`${url}/petstore.category.v1.CategoryService/Nope`, { method: "POST", body: "{}" });
  expect([answer.status, await answer.text()]).toEqual([404, "There is no such RPC here.\n"]);
});

test("a connection of HTTP/1.1 is kept for 72 seconds without a request, longer than load balancers keep theirs", async () => {
  const { url } = await started();
  const answer = await fetch(`${url}/petstore.category.v1.CategoryService/Nope`, { method: "POST", body: "{}" });
  expect(answer.headers.get("keep-alive")).toBe("timeout=72");
});

test.each([
  "Connection: Upgrade\r\nUpgrade: h2c",
  "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
  "HTTP2-Settings: AAMAAABkAAQAAP__",
])("nothing behind a request with %j is served, be it in the same packet or later", async (fields) => {
  const created: string[] = [];
  const { port } = await startCategories(async (name) => {
    created.push(name);
    return name;
  });
  const create = (name: string) => {
    const body = JSON.stringify({ category: { name } });
    const head = `POST /petstore.category.v1.CategoryService/CreateCategory HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
    return { head, body };
  };
  const [first, second, hidden] = [create("first"), create("second"), create("hidden")];
  const last = `${hidden.head}\r\n\r\n${hidden.body}`;
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  const packet = `${first.head}\r\n${fields}\r\n\r\n${first.body}${second.head.replace(/\d+$/, `${last.length}`)}\r\n\r\n`;
  await new Promise<void>((sent) => socket.write(packet, () => sent()));
  socket.write(last);
  const answers = await text(socket);
  expect(answers.match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual(["200"]);
  expect(answers).toMatch(/\r\nconnection: close\r\n/i);
  expect(created).toEqual(["first"]);
});

describe("to a client that asks for an unknown RPC", () => {
  const path = "/petstore.pet.v1.PetService/Nope";
  const ask = async (type: string) => {
    const { url } = await started();
    const answer = await fetch(url + path, { method: "POST", headers: { "content-type": type }, body: "\0\0\0\0\0" });
    return { answer, body: Buffer.from(await answer.arrayBuffer()) };
  };
  const error = {
    code: "unimplemented",
    message: "There is no such RPC here.",
    details: [expect.objectContaining({ debug: { reason: "ROUTE_NOT_FOUND", domain: "petstore" } })],
  };

  test.each(["application/grpc", "application/grpc+proto", "application/grpc-web+proto", "application/grpc-web-text"])(
    "%s gets a status of gRPC, and nothing else",
    async (type) => {
      const { answer, body } = await ask(type);
      expect(answer.status).toBe(200);
      expect(Object.fromEntries(answer.headers)).toMatchObject({ "content-type": type, "grpc-status": "12" });
      expect(body).toHaveLength(0);
    },
  );

  test("gRPC gets it in one frame over HTTP/2, or clients such as grpc-go look for trailers in vain", async () => {
    const session = connectHttp2((await started()).url);
    onTestFinished(() => session.destroy());
    const request = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
    request.end("\0\0\0\0\0");
    const [headers, flags] = await once(request, "response");
    expect([headers["grpc-status"], flags & END_STREAM]).toEqual(["12", END_STREAM]);
  });

  test.each(["application/proto", "application/json", "Application/JSON; charset=utf-8"])(
    "%s gets an error of Connect",
    async (type) => {
      const { answer, body } = await ask(type);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "application/json"]);
      expect(JSON.parse(`${body}`)).toEqual(error);
    },
  );

  test("so does a GET of Connect", async () => {
    const { url } = await started();
    const answer = await fetch(`${url}${path}?connect=v1&encoding=json&message=%7B%7D`);
    expect([answer.status, await answer.json()]).toEqual([404, error]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test.each(["application/connect+json", "application/connect+proto"])("%s gets the end of a stream", async (type) => {
    const { answer, body } = await ask(type);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
    expect([body.readUInt8(0), body.readUInt32BE(1)]).toEqual([2, body.length - 5]);
    expect(JSON.parse(body.subarray(5).toString())).toMatchObject({ error });
  });

  test.each(["text/plain", "application/grpcx", "application/grpc+a b"])("%s is no RPC", async (type) => {
    const { answer, body } = await ask(type);
    expect([answer.status, `${body}`]).toEqual([404, "There is no such RPC here.\n"]);
  });

  test.each(transports)("%s: its client says UNIMPLEMENTED", async (_, transport) => {
    const { url } = await started();
    await expect(createClient(PetService, transport(url)).getPet({})).rejects.toMatchObject({
      code: Code.Unimplemented,
    });
  });
});

test("a target may name scheme and host", async () => {
  const { url, port } = await started();
  const fields = `host: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close`;
  const socket = connect(port, "127.0.0.1");
  socket.end(`POST ${url}/grpc.health.v1.Health/Check HTTP/1.1\r\n${fields}\r\n\r\n{}`);
  expect(await text(socket)).toMatch(/^HTTP\/1.1 200 .*"SERVING/s);
});

test("a query after the path is not part of it", async () => {
  const { url } = await started();
  const answer = await fetch(`${url}/grpc.health.v1.Health/Check?x=1`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  expect(await answer.json()).toEqual({ status: "SERVING" });
});

test.each([
  ["connect-timeout-ms", "9999999999", "application/json"],
  ["grpc-timeout", "99999999H", "application/grpc-web+json"],
])("a time in %s that no timer can run for is long, not over at once", async (name, value, type) => {
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const { url } = await started();
  const json = Buffer.from("{}");
  const body = new Uint8Array(type === "application/json" ? json : envelope(json));
  const path = `/${CategoryService.typeName}/CreateCategory`;
  const answer = await fetch(url + path, { method: "POST", headers: { "content-type": type, [name]: value }, body });
  expect([answer.status, await answer.text()]).toEqual([200, expect.not.stringMatching(/grpc-status: [^0]|deadline/)]);
  expect(warnings).toEqual([]);
});
test("HTTP/1.0 may leave the host out", async () => {
  const { port } = await started();
  const socket = connect(port, "127.0.0.1");
  const json = "content-type: application/json\r\ncontent-length: 2\r\n";
  socket.end(`POST /grpc.health.v1.Health/Check HTTP/1.0\r\n${json}\r\n{}`);
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 [\s\S]*SERVING/);
});

describe("a request that is addressed to nobody", () => {
  const error = vi.spyOn(console, "error");
  afterEach(() => error.mockReset());
  const path = "/grpc.health.v1.Health/Check";
  const json = "content-type: application/json\r\ncontent-length: 2\r\n";

  test.each([
    ["no Host", ""],
    ["an empty Host", "Host:\r\n"],
    ["a Host with a space", "Host: a b\r\n"],
    ["a Host with a path", "Host: a/b\r\n"],
    ["two Hosts", "Host: a\r\nHost: a\r\n"],
  ])("HTTP/1.1, %s, is 400, and the next one is answered", async (_, host) => {
    const { port } = await started();
    const socket = connect(port, "127.0.0.1");
    const post = (given: string) => `POST ${path} HTTP/1.1\r\n${given}${json}\r\n{}`;
    socket.write(post(host) + post("Host: a\r\nConnection: close\r\n"));
    expect((await text(socket)).match(/^HTTP.*/gm)).toEqual(["HTTP/1.1 400 Bad Request", "HTTP/1.1 200 OK"]);
  });

  test.each([
    [[":authority", "a b"]],
    [[":authority", "a/b"]],
    [[":authority", "a:b:c"]],
    [[":authority", ""]],
    [
      [":authority", "a"],
      ["host", "b"],
    ],
  ] as Field[][])("HTTP/2, %j, is 400, and nothing is printed", async (...host) => {
    const { port } = await started();
    const { send, received } = rawHttp2(port);
    const post = (stream: number, named: readonly Field[]) => [
      headers(
        stream,
        [[":method", "POST"], [":scheme", "http"], [":path", path], ...named, ["content-type", "application/json"]],
        END_HEADERS,
      ),
      frame({ type: FrameType.DATA, flags: END_STREAM, stream, payload: Buffer.from("{}") }),
    ];
    send(...post(1, host), ...post(3, [[":authority", "a"]]));
    const answers = [1, 3].map((of) =>
      received(
        ({ type, stream }) => stream === of && [FrameType.HEADERS, FrameType.RST_STREAM].includes(type as never),
      ),
    );
    const [bad, good] = await Promise.all(answers);
    // nghttp2 resets what it takes for malformed by itself.
    if (bad?.type === FrameType.HEADERS) expect(bad.payload[0]).toBe(INDEXED_400);
    expect(good).toMatchObject({ type: FrameType.HEADERS });
    expect(good?.payload[0]).toBe(INDEXED_200);
    expect(error).not.toHaveBeenCalled();
  });
});
