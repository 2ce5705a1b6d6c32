/** Requests that never end, or are never done: others are still served, and the memory for all of them together is limited. */
import { connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { other, started } from "../fixtures/flooded.ts";
import {
  ACK,
  END_HEADERS,
  type Frame,
  FrameType,
  headers,
  ping,
  rawHttp2,
  reset,
  streams,
} from "../fixtures/frames.ts";
import { REQUEST_BYTES } from "./request-budget.ts";
import type { Handler } from "./requests.ts";

describe("requests that never end, or are never done", () => {
  /** So many requests whose bodies have begun. */
  const begun = (count: number, from = 0) =>
    streams(count, from).map((stream) => headers(stream, undefined, END_HEADERS));
  const acknowledged = ({ type, flags }: Frame) => type === FrameType.PING && flags === ACK;
  const read: Handler = (request, response) => void (other(request, response) || request.resume());

  const servedAgain = (othersAreServed: () => Promise<void>) =>
    expect
      .poll(() =>
        othersAreServed().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);

  test("beyond the budget they are refused with 503 by either protocol, and served again when the others have gone", async () => {
    let taken = 0;
    const count: Handler = (request, response) => {
      if (request.url === "/") taken++;
      return read(request, response);
    };
    const { url, port, othersAreServed } = await started(count, { requestBytes: 4 * REQUEST_BYTES });
    const hostile = rawHttp2(port);
    hostile.send(...begun(10), ping());
    await hostile.received(acknowledged);
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await refused.text()).toContain("Try again");
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    expect(await text(session.request({ ":path": "/other" }))).toContain("Try again");
    expect(taken).toBe(4);
    hostile.socket.destroy();
    await servedAgain(othersAreServed);
  });

  test("they count as long as something is done for them, be they reset", async () => {
    const work = Promise.withResolvers<void>();
    const all = Promise.withResolvers<void>();
    let taken = 0;
    const { port, othersAreServed } = await started(
      (request, response) => {
        if (other(request, response)) return;
        if (++taken === 10) all.resolve();
        return work.promise;
      },
      { requestBytes: 10 * REQUEST_BYTES },
    );
    const hostile = rawHttp2(port);
    hostile.send(...streams(10).map((stream) => headers(stream)));
    await all.promise;
    hostile.send(...streams(10).map((stream) => reset(stream)), ping());
    await hostile.received(acknowledged);
    const [another = 0] = streams(1, 10);
    hostile.send(headers(another));
    await hostile.received(({ type, stream }) => type === FrameType.HEADERS && stream === another);
    expect(taken).toBe(10);
    work.resolve();
    await servedAgain(othersAreServed);
  });

  test("those of HEAD that are reset are given back", async () => {
    const { port, othersAreServed } = await started((request, response) => void other(request, response), {
      requestBytes: 8 * REQUEST_BYTES,
    });
    const hostile = rawHttp2(port);
    for (let round = 0; round < 20; round++) {
      const four = streams(4, 4 * round);
      const isRead = (number: number) => hostile.received(({ payload }) => payload.equals(ping(number).subarray(9)));
      const head = [":method", ":scheme", ":path", ":authority"].map((name, i) => [
        name,
        ["HEAD", "http", "/", "a"][i] ?? "",
      ]);
      hostile.send(...four.map((stream) => headers(stream, head as never)), ping(2 * round + 1));
      await isRead(2 * round + 1);
      hostile.send(...four.map((stream) => reset(stream)), ping(2 * round + 2));
      await isRead(2 * round + 2);
    }
    await othersAreServed();
  });

  test("a body that is announced counts, and is given back with its answer", async () => {
    const handler: Handler = (request, response) => void request.resume().once("end", () => response.end("answer"));
    const { url } = await started(handler, { requestBytes: 2 * REQUEST_BYTES });
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    const post = async (bytes: number) => {
      const stream = session.request({ ":method": "POST", "content-length": `${bytes}` }).end(Buffer.alloc(bytes));
      return text(stream);
    };
    for (let i = 0; i < 10; i++) expect(await post(30_000)).toBe("answer");
    expect(await post(40_000)).toContain("Try again");
  });
});
