/** What breaks the rules ends a link with a word why, and nothing else. */
import { channel } from "node:diagnostics_channel";
import type { ServerHttp2Stream } from "node:http2";
import { Code } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  ask,
  askAll,
  clientOf,
  failures,
  hello,
  METHOD,
  openTo,
  rawCaller,
  startRawService,
  startService,
} from "../fixtures/linked.ts";
import { LinkRequestSchema } from "../gen/link/internal/v1/link_service_pb.ts";
import { LINK_CONTENT_TYPE, MAX_FRAME_BYTES, toFrame } from "./frames.ts";

const frame = (init: Parameters<typeof toFrame<typeof LinkRequestSchema>>[1]) => toFrame(LinkRequestSchema, init);
const methods = [{ number: 1, name: METHOD }];
const call = { id: 1, method: 1, message: new Uint8Array([8, 1]) };
const tooLong = Buffer.from([0, 0, 0, 0, 0]);
tooLong.writeUInt32BE(MAX_FRAME_BYTES + 1, 1);

describe("a caller", () => {
  test("whose connection is lost in the middle of a frame breaks no rule", async () => {
    const noticed = Promise.withResolvers<void>();
    const created = channel("http2.server.stream.created");
    const follow = (message: unknown) =>
      (message as { readonly stream: ServerHttp2Stream }).stream.once("close", noticed.resolve);
    created.subscribe(follow);
    onTestFinished(() => void created.unsubscribe(follow));
    const service = await startService();
    const link = rawCaller(service.url);
    link.stream.write(Buffer.concat([frame(hello), Buffer.from([0, 0, 0, 0, 9, 1])]));
    await link.count(1);
    link.stream.session?.destroy();
    await noticed.promise;
    expect(service.logged.filter((line) => line.includes("breaks the rules"))).toEqual([]);
  });

  test.each([
    ["that does not say hello", [frame({ methods })], /does not say hello/],
    ["that says hello twice", [frame(hello), frame(hello)], /says hello twice/],
    ["that packs its frames", [frame(hello), Buffer.from([1, 0, 0, 0, 0])], /flags 1/],
    ["whose frame is too long", [frame(hello), tooLong], /more than \d+/],
    ["that sends no protobuf", [frame(hello), Buffer.from([0, 0, 0, 0, 2, 0x1a, 0x7f])], /holds no LinkRequest/],
    ["that calls a method without a number", [frame({ ...hello, calls: [call] })], /no method has the number 1/],
    ["that numbers a method twice", [frame({ ...hello, methods: [...methods, ...methods] })], /method 1 has two names/],
    [
      "that numbers too many methods",
      [frame({ ...hello, methods: Array.from({ length: 1001 }, (_, number) => ({ number, name: METHOD })) })],
      /more than 1000 methods/,
    ],
    ["that uses an id twice", [frame({ ...hello, methods, calls: [call, call] })], /two calls under way have the id 1/],
  ])("%s", async (_, frames, why) => {
    const service = await startService(() => new Promise(() => {}));
    const link = rawCaller(service.url);
    for (const bytes of frames) link.stream.write(bytes);
    const ended = await link.ended;
    expect(ended).toMatchObject({ "grpc-status": `${Code.Internal}` });
    expect(decodeURIComponent(`${ended["grpc-message"]}`)).toMatch(why);
    expect(service.logged.filter((line) => why.test(line))).toHaveLength(1);
  });

  test("that ends in the middle of a frame", async () => {
    const service = await startService();
    const link = rawCaller(service.url);
    link.send(hello);
    await link.count(1);
    link.stream.end(Buffer.from([0, 0]));
    expect(await link.ended).toMatchObject({ "grpc-status": `${Code.Internal}` });
  });

  test("harms no other: the service goes on, and so do its other links", async () => {
    const service = await startService();
    const client = clientOf(openTo(service.url));
    await ask(client, 1);
    const link = rawCaller(service.url);
    link.stream.write(tooLong);
    await link.ended;
    expect((await ask(client, 2)).op).toBe(2n);
  });

  test("a request that is no such message fails by itself", async () => {
    const service = await startService();
    const link = rawCaller(service.url);
    link.send({
      ...hello,
      methods,
      calls: [
        { ...call, message: new Uint8Array(12).fill(0xff) },
        { ...call, id: 2 },
        { ...call, id: 3, headers: [{ name: "a b", value: "" }] },
      ],
    });
    await link.count(2);
    const answers = link.received.flatMap(({ answers }) => answers);
    const codeOf = ({ outcome }: (typeof answers)[number]) => outcome.case === "failure" && Code[outcome.value.code];
    expect(answers.map((answer) => [answer.id, codeOf(answer)]).sort()).toEqual([
      [1, "Internal"],
      [2, false],
      [3, "Internal"],
    ]);
  });
});

describe("a service", () => {
  const answer = (id: number) => ({ id, outcome: { case: "message" as const, value: new Uint8Array() } });
  test.each([
    ["that answers a call twice", [[1], [1]], "it answers call 1, which it was not sent"],
    ["that answers a call that was never made", [[1], [9]], "it answers call 9, which it was not sent"],
  ])("%s is not trusted further", async (_, ids, why) => {
    const url = await startRawService(async (link) => {
      link.send(hello);
      await link.count(2);
      for (const some of [...ids, [2]]) link.send({ answers: some.map(answer) });
    });
    const results = await askAll(clientOf(openTo(url)), 2);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(failures(results).map(({ rawMessage }) => rawMessage)).toEqual([`the link is lost: ${why}`]);
  });

  test.each([
    ["that says hello twice", Buffer.from([0, 0, 0, 0, 2, 0x0a, 0]), "it says hello twice"],
    ["whose frame is too long", tooLong, "a frame says that it has 1114113 bytes, more than 1114112"],
    ["that sends no protobuf", Buffer.from([0, 0, 0, 0, 2, 0x12, 0x7f]), "a frame holds no LinkResponse"],
  ])("%s", async (_, bytes, why) => {
    const url = await startRawService(async (link) => {
      link.send(hello);
      await link.count(2);
      link.stream.write(bytes);
    });
    const results = await askAll(clientOf(openTo(url)), 2);
    expect(failures(results).map(({ rawMessage }) => rawMessage)).toEqual(Array(2).fill(`the link is lost: ${why}`));
  });

  test("whose last words can't be decoded", async () => {
    const url = await startRawService(async ({ stream, send, count }) => {
      stream.respond({ ":status": 200, "content-type": LINK_CONTENT_TYPE }, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "13", "grpc-message": "100 %" }));
      send(hello);
      await count(2);
      stream.end();
    });
    const results = await askAll(clientOf(openTo(url)), 1);
    expect(failures(results).map(({ rawMessage }) => rawMessage)).toEqual(["the link is lost: 100 %"]);
  });

  test("that gives no outcome fails that call by itself", async () => {
    const url = await startRawService(async (link) => {
      link.send(hello);
      await link.count(2);
      link.send({ answers: [{ id: 1 }, answer(2)] });
    });
    const results = await askAll(clientOf(openTo(url)), 2);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  });
});
