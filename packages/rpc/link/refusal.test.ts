/** Who gets no link, and how their calls go then. */
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { realTime } from "@petstore/runtime/clock";
import { expect, onTestFinished, test, vi } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { SECRET_HEADER } from "../call.ts";
import { createServiceTransport } from "../client/pipeline.ts";
import {
  askAll,
  type Client,
  clientOf,
  failures,
  hello,
  openTo,
  rawCaller,
  secret,
  startRawService,
  startService,
  watchRequests,
} from "../fixtures/linked.ts";
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";

const transports: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
  ["Connect", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
];
const openLink = async (transport: Transport, headers = {}) => {
  const link = createClient(LinkService, transport).link(createAsyncIterable([hello]), { headers });
  const error = await link[Symbol.asyncIterator]()
    .next()
    .then(() => undefined, ConnectError.from);
  return error && [error.code, reasonOf(error)?.reason];
};

test.each(transports)("over %s a stranger is refused", async (_, transportTo) => {
  const { url } = await startService();
  const refused = [Code.PermissionDenied, "PERMISSION_DENIED"];
  expect(await openLink(transportTo(url))).toEqual(refused);
  expect(await openLink(transportTo(url), { [SECRET_HEADER]: "a guess" })).toEqual(refused);
});

test.each(transports.filter(([name]) => name !== "gRPC"))("there is no link over %s", async (_, transportTo) => {
  const { url } = await startService();
  expect(await openLink(transportTo(url), { [SECRET_HEADER]: secret })).toEqual([Code.Unimplemented, undefined]);
});

test("nothing of a stranger's runs", async () => {
  let ran = 0;
  const { url } = await startService(() => {
    ran++;
    return {};
  });
  const results = await askAll(clientOf(openTo(url, { secret: "a guess" })), 3);
  expect(failures(results).map(({ code }) => code)).toEqual(Array(3).fill(Code.PermissionDenied));
  expect(ran).toBe(0);
});

test("a caller of another version is told so, before anything runs", async () => {
  const { url } = await startService();
  const link = rawCaller(url);
  link.send({ hello: { version: 2 } });
  expect(await link.ended).toMatchObject({ "grpc-status": `${Code.Unimplemented}` });
});

test.each([
  [
    "does not know links",
    (link: Parameters<Parameters<typeof startRawService>[0]>[0]) => {
      const status = { ":status": 200, "content-type": "application/grpc", "grpc-status": `${Code.Unimplemented}` };
      link.stream.respond(status, { endStream: true });
    },
  ],
  ["is no gRPC server", (link) => link.stream.respond({ ":status": 404 }, { endStream: true })],
  ["speaks another version", (link) => link.send({ hello: { version: 2 } })],
])("a service that %s gets plain RPCs, and is asked again after a minute", async (_, refuse) => {
  const requests = watchRequests();
  const url = await startRawService(refuse);
  let now = 0;
  const client = clientOf(openTo(url, { clock: () => now }));
  for (const time of [0, 1, 59_999, 60_000]) {
    now = time;
    await askAll(client, 2); // its plain RPCs are reset: what matters is that they were made
  }
  const plain = ["GetCategoryState", "GetCategoryState"];
  expect(requests).toEqual(["Link", ...plain, ...plain, ...plain, "Link", ...plain]);
});

test("nobody waits while a service that had no link is asked for one again", async () => {
  const requests = watchRequests();
  const url = await startRawService((link, n) => n === 0 && link.send({ hello: { version: 2 } }));
  let now = 0;
  const client = clientOf(openTo(url, { clock: () => now }));
  await askAll(client, 1);
  now = 60_000;
  // So that it is waited for a greeting for ever.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await askAll(client, 2);
  expect(requests.slice(2).toSorted()).toEqual(["GetCategoryState", "GetCategoryState", "Link"]);
});

test("nor does anybody while another replica is asked for one, behind the same proxy", async () => {
  const requests = watchRequests();
  const url = await startRawService((link, n) => n === 0 && link.send({ hello: { version: 2 } }));
  const transport = createServiceTransport({ urls: [url, url], secret, errors, ...realTime });
  onTestFinished(() => transport.close());
  const [first, second] = transport.replicas().map((replica) => clientOf(replica.transport)) as [Client, Client];
  await askAll(first, 1);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await askAll(second, 2);
  expect(requests.slice(2).toSorted()).toEqual(["GetCategoryState", "GetCategoryState", "Link"]);
});

test("calls are plain when that is wanted", async () => {
  const requests = watchRequests();
  const { url } = await startService();
  await askAll(clientOf(openTo(url, { link: false })), 2);
  expect(requests).toEqual(["GetCategoryState", "GetCategoryState"]);
});
