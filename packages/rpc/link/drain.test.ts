/** The end of a link in good order. */
import { createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { expect, onTestFinished, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { createServiceTransport } from "../client/pipeline.ts";
import {
  ask,
  clientOf,
  hello,
  METHOD,
  openTo,
  rawCaller,
  secret,
  startRawService,
  startService,
} from "../fixtures/linked.ts";

test("a service that closes answers what it was sent, and what is still on its way", async () => {
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const service = await startService(async ({ categoryId }) => {
    begun.resolve();
    await held.promise;
    return { op: categoryId };
  });
  const link = rawCaller(service.url);
  const call = (id: number) => ({ id, method: 1, message: new Uint8Array([8, id]) });
  link.send({ ...hello, methods: [{ number: 1, name: METHOD }], calls: [call(1)] });
  await begun.promise;
  const closed = service.close();
  await link.count(2);
  expect(link.received[1]?.drain).toBeDefined();
  link.send({ calls: [call(2)] });
  link.stream.end();
  held.resolve();
  expect(await link.ended).toMatchObject({ "grpc-status": "0" });
  expect(link.received.flatMap(({ answers }) => answers.map(({ id }) => id)).sort()).toEqual([1, 2]);
  await closed;
});

test("a service that closes has no link left when it is closed", async () => {
  const service = await startService();
  const client = clientOf(openTo(service.url));
  await ask(client, 1);
  await service.close(60_000);
  await expect(ask(client, 2)).rejects.toThrow("no connection");
});

test("what was not sent when a link drains goes over the next one", async () => {
  let links = 0;
  const url = await startRawService(async (link, n) => {
    links++;
    link.send(n === 0 ? { ...hello, drain: {} } : hello);
    await link.count(2);
    const [call] = link.received[1]?.calls ?? [];
    link.send({ answers: [{ id: call?.id ?? 0, outcome: { case: "message", value: new Uint8Array() } }] });
  });
  expect(await ask(clientOf(openTo(url)), 1)).toBeDefined();
  expect(links).toBe(2);
});

test("no call is lost when connections to a host name get successors under load", async () => {
  const { port } = new URL((await startService()).url);
  let later = 0;
  const time = {
    ...realTime,
    clock: () => realTime.clock() + later,
    sleep: (ms: number, signal?: AbortSignal) => realTime.sleep(ms / 100, signal),
  };
  const urls = [`http://category.shop.test:${port}`];
  const lookup = async () => ["127.0.0.1"];
  const transport = createServiceTransport({ urls, lookup, secret, errors, ...time });
  onTestFinished(() => transport.close());
  const replica = () => transport.replicas()[0];
  await expect.poll(() => replica()?.address).toBe("127.0.0.1");
  const client = createClient(CategoryInternalService, transport);
  let isOver = false;
  const caller = async () => {
    while (!isOver) await ask(client, 1);
  };
  const callers = Promise.all(Array.from({ length: 20 }, caller));
  for (let n = 0; n < 10; n++) {
    const before = replica();
    later += 12 * 60_000;
    await expect.poll(() => replica() !== before).toBe(true);
  }
  isOver = true;
  await callers;
});

test("no call is lost when one of two replicas closes under load", async () => {
  const services = [await startService(), await startService()];
  const urls = services.map(({ url }) => url);
  const transport = createServiceTransport({ urls, secret, errors, ...realTime });
  onTestFinished(() => transport.close());
  const client = createClient(CategoryInternalService, transport);
  let isOver = false;
  let answered = 0;
  const caller = async () => {
    while (!isOver) {
      await ask(client, 1);
      answered++;
    }
  };
  const callers = Promise.all(Array.from({ length: 20 }, caller));
  while (answered < 200) await new Promise((resolve) => setImmediate(resolve));
  await services[0]?.close();
  for (const before = answered; answered < before + 200; ) await new Promise((resolve) => setImmediate(resolve));
  isOver = true;
  await callers;
});
