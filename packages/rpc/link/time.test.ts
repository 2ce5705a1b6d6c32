/** A link has no end of its own, and yet nobody waits for ever for the other side. */

import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { Code, createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { createServiceTransport } from "../client/pipeline.ts";
import { ask, echo, failureOf, hello, METHOD, rawCaller, secret, startService } from "../fixtures/linked.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import { createDispatcher } from "../server/dispatcher.ts";
import { implement } from "../server/handlers.ts";
import { createLinkServer } from "./server.ts";

const log = pino({ level: "silent" });
async function startBrief() {
  const implementation = implement(CategoryInternalService, { getCategoryState: echo });
  const dispatcher = createDispatcher([implementation], { deps: { ...realTime, log }, secret, errors });
  const links = createLinkServer({ dispatcher, log });
  return startOnePort((request, response) => links.serve(request, response), { requestMs: 50 });
}

test("the time for a request does not count once the caller has said hello", async () => {
  const { url } = await startBrief();
  const link = rawCaller(url);
  link.send({ ...hello, methods: [{ number: 1, name: METHOD }] });
  await link.count(1);
  // One that began later is over.
  const session = connectHttp2(url).on("error", () => {});
  onTestFinished(() => session.destroy());
  const later = session.request({ ":method": "POST", ":path": "/" }).on("error", () => {});
  await once(later.resume(), "close");
  link.send({ calls: [{ id: 1, method: 1, message: new Uint8Array([8, 1]) }] });
  await link.count(2);
});

test("a link on which nobody says hello is over in time", async () => {
  const { url } = await startBrief();
  await rawCaller(url).ended;
});

test("a service that falls silent on an open link is found out", async () => {
  const { url } = await startService();
  // What is between the two swallows everything from then on.
  const sockets: Socket[] = [];
  const between = createServer((socket) => {
    const onward = connect(Number(new URL(url).port), "127.0.0.1");
    for (const one of [socket, onward]) sockets.push(one.on("error", () => {}));
    socket.pipe(onward).pipe(socket);
  }).listen(0, "127.0.0.1");
  await once(between, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    between.close();
  });
  const address = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
  const transport = createServiceTransport({ urls: [address], secret, errors, ...realTime });
  onTestFinished(() => transport.close());
  const client = createClient(CategoryInternalService, transport);
  expect((await ask(client, 1)).op).toBe(1n);
  for (const socket of sockets) socket.unpipe().pause();
  expect(await failureOf(ask(client, 2, { timeoutMs: 50_000 }))).toMatchObject({ code: Code.Unavailable });
});
