/** Clients that never end their requests: others are still served, and the memory for them is limited. */
import { connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { other, started } from "../fixtures/flooded.ts";
import {
  ACK,
  END_HEADERS,
  type Field,
  type Frame,
  FrameType,
  frame,
  headers,
  ping,
  rawHttp2,
  reset,
  streams,
} from "../fixtures/frames.ts";
import type { Handler } from "./one-port.ts";
import { REQUEST_BYTES, WORK_BYTES } from "./request-memory.ts";

describe("requests that never end", () => {
  const ONE = REQUEST_BYTES + WORK_BYTES;
  const part = (stream: number, bytes: number) => frame({ type: FrameType.DATA, stream, payload: Buffer.alloc(bytes) });
  /** So many requests whose bodies have begun. */
  const begun = (count: number, from = 0) =>
    streams(count, from).map((stream) => headers(stream, undefined, END_HEADERS));
  const acknowledged = ({ type, flags }: Frame) => type === FrameType.PING && flags === ACK;
  const read: Handler = (request, response) => void (other(request, response) || request.resume());
  /** Of memory for 300 requests, all that one address may have. */
  const taken = async (port: number) => {
    const greedy = [rawHttp2(port), rawHttp2(port)];
    for (const { send, received } of greedy) {
      send(...begun(80), ping());
      await received(acknowledged);
    }
    return greedy;
  };
  const elsewhere = "127.0.0.2";
  const getOther: readonly Field[] = [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/other"],
    [":authority", "a"],
  ];

  test("are refused beyond the share of their address, and may be sent again", async () => {
    let taken = 0;
    const count: Handler = (request, response) => void (other(request, response) || taken++);
    const { port, othersAreServed } = await started(count, { requestBytes: 20 * ONE });
    const hostile = [rawHttp2(port), rawHttp2(port)];
    for (const { send, received } of hostile) {
      send(...begun(15), ping());
      await received(acknowledged);
    }
    await othersAreServed(elsewhere);
    const refused = await hostile[1]?.received(({ type }) => type === FrameType.RST_STREAM);
    expect(refused?.payload.readUInt32BE()).toBe(7);
    expect(taken).toBeGreaterThan(5);
    expect(taken).toBeLessThanOrEqual(10);
  });

  test("over HTTP/1.1 are refused with 503", async () => {
    const { url, port, othersAreServed } = await started(read, { requestBytes: 4 * ONE });
    const hostile = rawHttp2(port);
    hostile.send(...begun(2), ping());
    await hostile.received(acknowledged);
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await refused.text()).toContain("Try again");
    await othersAreServed(elsewhere);
  });

  test("close the connection that goes on though all of them are refused", async () => {
    const { port, othersAreServed } = await started(read, { requestBytes: 20 * ONE });
    const hostile = rawHttp2(port);
    for (let i = 0; i < 200 && !hostile.socket.destroyed; i++) {
      hostile.send(...begun(10, 10 * i));
      await othersAreServed(elsewhere);
    }
    await hostile.closed;
    const { payload } = await hostile.received(({ type }) => type === FrameType.GOAWAY);
    expect(payload.readUInt32BE(4)).toBe(11);
  });

  test("count as long as something is done for them, be they reset", async () => {
    const work = Promise.withResolvers<void>();
    const all = Promise.withResolvers<void>();
    let taken = 0;
    const { port, othersAreServed } = await started(
      (request, response) => {
        if (other(request, response)) return;
        if (++taken === 10) all.resolve();
        return work.promise;
      },
      { requestBytes: 20 * ONE + 64 * 1024 },
    );
    const hostile = rawHttp2(port);
    hostile.send(...streams(10).map((stream) => headers(stream)));
    await all.promise;
    hostile.send(...streams(10).map((stream) => reset(stream)), ping());
    await hostile.received(acknowledged);
    const [another = 0] = streams(1, 10);
    hostile.send(headers(another));
    await hostile.received(({ type, stream }) => type === FrameType.RST_STREAM && stream === another);
    expect(taken).toBe(10);
    work.resolve();
    await othersAreServed();
  });

  test("may be refused any number of times, if some are taken between", async () => {
    const { port } = await started(read, { requestBytes: 300 * ONE });
    const patient = rawHttp2(port);
    const ask = async (from: number, count: number, type: number) => {
      const asked = streams(count, from);
      patient.send(...asked.map((stream) => headers(stream, getOther)));
      const last = asked.at(-1);
      await patient.received((frame) => frame.type === type && frame.stream === last);
    };
    for (const from of [0, 601]) {
      const greedy = await taken(port);
      for (let asked = 0; asked < 600; asked += 50) await ask(from + asked, 50, FrameType.RST_STREAM);
      for (const { send, received } of greedy) {
        send(...streams(80).map((stream) => reset(stream)), ping(1));
        await received((frame) => acknowledged(frame) && frame.payload?.[7] === 1);
      }
      await ask(from + 600, 1, FrameType.HEADERS);
    }
    expect(patient.socket.destroyed).toBe(false);
  });

  test.each([
    ["large", 6, 10_000],
    ["tiny", 200, 1],
  ])("close the connection with the most of them when their bodies grow, in %s pieces", async (_, count, bytes) => {
    const { port, othersAreServed } = await started(read, { requestBytes: 5 * ONE });
    const [modest, hostile] = [rawHttp2(port), rawHttp2(port)];
    modest.send(...begun(1), part(1, 1000), ping());
    await modest.received(acknowledged);
    hostile.send(...begun(1), ...Array.from({ length: count }, () => part(1, bytes)));
    await hostile.closed;
    await othersAreServed();
    expect(modest.socket.destroyed).toBe(false);
  });

  test("count until they are answered", async () => {
    const { port } = await started(
      (request, response) => void request.resume().once("end", () => response.end("answer")),
      { requestBytes: 4 * ONE },
    );
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    for (let i = 0; i < 20; i++)
      expect(await text(session.request({ ":method": "POST" }).end(Buffer.alloc(10_000)))).toBe("answer");
  });
});
