/** How the command reaches a service, and how it is reached: protocols, TLS, HTTP/1.1 and HTTP/2 on one port; and the contract's change. */
import { createServer as createHttp1 } from "node:http";
import { connect, createSecureServer, createServer } from "node:http2";
import { request as requestHttps } from "node:https";
import type { FileRegistry } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Authority, createAuthority } from "../../../scripts/certificates.ts";
import { askHttp2 } from "../fixtures/h2.ts";
import { run, serve } from "./fixtures/command.ts";
import { descriptorSet, fileOf, portOf, type Shop, shop, shopContract } from "./fixtures/shop.ts";

const DAY_MS = 86_400_000;
const times = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
const names = ["localhost", "127.0.0.1"];

let registry: FileRegistry;
let calls: Shop;
let set = "";
let authority: Authority;
const closing: (() => void)[] = [];
beforeAll(async () => {
  registry = shopContract();
  calls = shop(registry);
  set = descriptorSet(registry);
  authority = await createAuthority("one", times);
});
afterAll(() => closing.forEach((close) => void close()));

const OFF = ["--admin-port", "off"];
const item = { itemName: "a", size: "7", kind: "KIND_BIG", note: "", more: null };

test.each(["grpc", "grpcweb", "connect"])("--protocol %s, and HTTP/1.1 and HTTP/2 on the port", async (protocol) => {
  const adapter = connectNodeAdapter({
    routes: calls.routes,
    grpc: protocol === "grpc",
    grpcWeb: protocol === "grpcweb",
    connect: protocol === "connect",
  });
  // gRPC is HTTP/2; the others come over HTTP/1.1, which every server of theirs has.
  const server = protocol === "grpc" ? createServer(adapter) : createHttp1(adapter);
  const target = await portOf(server);
  closing.push(() => server.close());
  const { ask, url } = await serve("--descriptor-set", set, "--target", target, "--protocol", protocol, ...OFF);
  expect(JSON.parse((await ask("/items/a")).text)).toEqual(item);
  expect((await ask("/items/none")).status).toBe(404);
  const h2c = await askHttp2(Number(new URL(url).port), { ":method": "GET", ":path": "/items/a" });
  expect([h2c.head[":status"], JSON.parse(h2c.text)]).toEqual([200, item]);
});

test("--tls-cert and --tls-key: HTTPS, and HTTP/2 by ALPN", async () => {
  const target = createServer(connectNodeAdapter({ routes: calls.routes }));
  closing.push(() => target.close());
  const own = await authority.issue({ names, ...times });
  const tls = ["--tls-cert", fileOf("own.pem", own.cert), "--tls-key", fileOf("own.key", own.key)];
  const { url } = await serve("--descriptor-set", set, "--target", await portOf(target), ...tls, ...OFF);
  expect(url).toMatch(/^https:/);
  const ca = authority.cert;
  const status = await new Promise((resolve, reject) => {
    const request = requestHttps(`${url}/items/a`, { ca }, (answer) => resolve(answer.resume().statusCode));
    request.on("error", reject).end();
  });
  expect(status).toBe(200);
  const session = connect(url, { ca });
  const stream = session.request({ ":path": "/items/a" });
  const head = await new Promise<Record<string, unknown>>((resolve, reject) => {
    session.on("error", reject);
    stream.on("response", resolve).on("error", reject);
  });
  expect([session.alpnProtocol, head[":status"]]).toEqual(["h2", 200]);
  session.destroy();
});

test("--cacert, --cert and --key towards a target that wants a certificate; a wrong one, or another CA, ends the start", async () => {
  const other = await createAuthority("another", times);
  const [theirs, own] = [await authority.issue({ names, ...times }), await authority.issue({ names, ...times })];
  const adapter = connectNodeAdapter({ routes: calls.routes });
  const server = createSecureServer(
    { ...theirs, ca: authority.cert, requestCert: true, rejectUnauthorized: true },
    adapter,
  );
  const target = await portOf(server, "https");
  closing.push(() => server.close());
  const args = ["--descriptor-set", set, "--target", target, ...OFF];
  const client = ["--cert", fileOf("client.pem", own.cert), "--key", fileOf("client.key", own.key)];
  const ca = ["--cacert", fileOf("ca.pem", authority.cert)];
  const { ask } = await serve(...args, ...ca, ...client);
  expect(JSON.parse((await ask("/items/a")).text)).toEqual(item);

  const wrong = await run(...args, "--cacert", fileOf("other.pem", other.cert), ...client, "--port", "0");
  expect(wrong).toEqual({ code: 1, text: expect.stringMatching(/can't be spoken to by TLS: .*--cacert/) });
  const pair = ["--cert", fileOf("theirs.pem", theirs.cert), "--key", fileOf("client.key", own.key)];
  expect(await run(...args, ...ca, ...pair)).toEqual({
    code: 2,
    text: expect.stringMatching(/no certificate with its key/),
  });
  const notPem = await run(...args, "--cacert", fileOf("none.pem", "none"), "--port", "0");
  expect(notPem).toEqual({ code: 2, text: expect.stringMatching(/--cacert: .*none.pem/) });
});

test("--watch: what is open ends on the contract before, and a file that is broken is not served", async () => {
  const target = createServer(connectNodeAdapter({ routes: calls.routes }));
  closing.push(() => target.close());
  const watched = fileOf("watched.binpb", "");
  const { copyFileSync, writeFileSync } = await import("node:fs");
  copyFileSync(set, watched);
  const { ask, says } = await serve("--descriptor-set", watched, "--target", await portOf(target), "--watch", ...OFF);
  const open = ask("/items/held");
  await calls.asked;
  writeFileSync(watched, "broken");
  await says(/the contract of before goes on being served/);
  expect((await ask("/items/a")).status).toBe(200);
  const more = shopContract("/more");
  copyFileSync(descriptorSet(more), watched);
  await says(/The contract has changed/);
  expect([(await ask("/more/a")).status, (await ask("/items/a")).status]).toEqual([200, 404]);
  calls.held.resolve();
  const ended = await open;
  expect([ended.status, JSON.parse(ended.text).itemName]).toEqual([200, "held"]);
});
